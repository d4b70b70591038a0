"""Turn request bodies into objects: content type, kind and version, fields, field validation.

Source: apimachinery/pkg/runtime/serializer/json and
apiserver/pkg/endpoints/handlers/{create,rest}.go.
"""

from typing import Any

import msgspec

from leases.apiserver.codec import protobuf, schema
from leases.apiserver.codec.decoding import SCHEME, DecodeError, Decoder, is_registered
from leases.apiserver.codec.go_json import JsonError, Pairs, loads, type_word
from leases.apiserver.codec.yaml_input import YamlError, load_yaml
from leases.apiserver.errors import bad_request, unsupported_body
from leases.apiserver.http.request import Request
from leases.apiserver.resources import Resource
from leases.wire.status import go_quote

_SUMMARY = 30
_TYPE_META = {"apiVersion": "apiVersion", "apiversion": "apiVersion", "kind": "kind"}
_FIND_KIND = (
    r'struct { APIVersion string "json:\"apiVersion,omitempty\""; '
    r'Kind string "json:\"kind,omitempty\"" }'
)


class Parsed(msgspec.Struct):
    """A body as plain values; `complaints` are errors of strict decoding (repeated YAML keys)."""

    value: Any
    complaints: list[str]


def media_type_of(request: Request) -> str:
    """The media type of the body; JSON without a Content-Type. Raises 415."""
    given = request.header(b"content-type").partition(";")[0].strip().lower()
    if given in ("", "application/json"):
        return "application/json"
    if given in ("application/yaml", protobuf.MEDIA_TYPE):
        return given
    raise unsupported_body()


def parse(
    data: bytes,
    media_type: str,
    kind: schema.Structure,
    known: dict[str, Any] | None = None,
) -> Parsed:
    """Raises ValueError with Go's message. `kind` is the type of a protobuf body.

    `known` is the metadata of the object that the body replaces.
    """
    if media_type == protobuf.MEDIA_TYPE:
        if kind.message not in protobuf.MESSAGES:
            raise unsupported_body()
        return Parsed(protobuf.read_binary(data, kind.short, kind.message, known), [])
    if media_type == "application/yaml":
        try:
            found = load_yaml(data)
        except YamlError as error:
            raise ValueError(str(error)) from None
        return Parsed(found.value, found.duplicates)
    try:
        return Parsed(loads(data), [])
    except JsonError as error:
        raise ValueError(f"couldn't get version/kind; json parse error: {error}") from None


def summary(data: bytes) -> str:
    """The start of a body as error messages show it."""
    if not data:
        return "<empty>"
    shown = (
        data[:_SUMMARY].decode("utf-8", "replace") if data[:1] == b"{" else data[:_SUMMARY].hex()
    )
    return f"{shown} ..." if len(data) > _SUMMARY else shown


def read_object(
    request: Request,
    data: bytes,
    media_type: str,
    resource: Resource,
    validation: str,
    *,
    known: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """The canonical object in a body, without kind and apiVersion.

    `known` is the metadata of the object that the body replaces. Raises 400 and 415; warns on the
    request.
    """
    parsed, kind, version = _parse_object(data, media_type, resource, known)
    decoder = Decoder(known)
    try:
        check_kind(kind, version, resource)
        obj = decoder.decode({} if parsed.value is None else parsed.value, resource.schema)
    except DecodeError as error:
        raise _unhandled(kind, version, resource, str(error)) from None
    if validation == "Strict" and (parsed.complaints or decoder.strict):
        message = _strict_message(parsed.complaints, decoder.strict)
        raise _unhandled(kind, version, resource, message)
    if version != resource.api_version:
        raise _foreign_version(version, resource)
    if validation == "Warn":
        for complaint in [*parsed.complaints, *decoder.strict]:
            request.warn(complaint)
    obj.pop("kind", None)
    obj.pop("apiVersion", None)
    return obj


def _parse_object(
    data: bytes, media_type: str, resource: Resource, known: dict[str, Any] | None
) -> tuple[Parsed, str, str]:
    """The body, its kind and its apiVersion. Raises 400."""
    try:
        try:
            parsed = parse(data, media_type, resource.schema, known)
        except protobuf.BadMessage as error:
            kind, version = kind_in(error.value, resource.kind, resource.api_version, data)
            raise _unhandled(kind, version, resource, str(error)) from None
        return parsed, *kind_in(parsed.value, resource.kind, resource.api_version, data)
    except ValueError as error:
        raise bad_request(
            f"the object provided is unrecognized (must be of type {resource.kind}): "
            f"{error} ({summary(data)})"
        ) from None


def _foreign_version(version: str, resource: Resource) -> Exception:
    return bad_request(
        f"the API version in the data ({version}) does not match "
        f"the expected API version ({resource.api_version})"
    )


def _strict_message(yaml_complaints: list[str], complaints: list[str]) -> str:
    if yaml_complaints:
        lines = "".join(f"\n  {line}" for line in yaml_complaints)
        complaints = [f"yaml: unmarshal errors:{lines}", *complaints]
    return f"strict decoding error: {', '.join(complaints)}"


def no_object(value: Any) -> str:
    """Go's message for a body that is not an object and so has no kind."""
    return f"json: cannot unmarshal {type_word(value)} into Go value of type {_FIND_KIND}"


def _unhandled(kind: str, version: str, resource: Resource, why: str) -> Exception:
    short = version.rpartition("/")[2]
    return bad_request(f'{kind} in version "{short}" cannot be handled as a {resource.kind}: {why}')


def kind_in(value: Any, kind: str, version: str, data: bytes) -> tuple[str, str]:
    """kind and apiVersion of the body `data`, by default those given. Raises ValueError.

    Reads the names without their case, as encoding/json does. Source: json.SimpleMetaFactory.
    """
    if value is None:
        return kind, version
    if not isinstance(value, dict):
        raise ValueError(f"couldn't get version/kind; json parse error: {no_object(value)}")
    found = {"apiVersion": "", "kind": ""}
    wrong = ""
    for name, item in value.pairs if isinstance(value, Pairs) else value.items():
        field = _TYPE_META.get(name) or _TYPE_META.get(name.casefold())
        if field is None or item is None:
            continue
        if isinstance(item, str):
            found[field] = item
        elif not wrong:
            wrong = f"cannot unmarshal {type_word(item)} into Go struct field .{field} of type"
    if wrong:
        raise ValueError(f"couldn't get version/kind; json parse error: json: {wrong} string")
    return found["kind"] or kind, _with_defaults(found["apiVersion"], version, data)


def _with_defaults(given: str, default: str, data: bytes) -> str:
    """The apiVersion with a default for what it lacks."""
    if given in ("", "/"):
        return default
    if given.count("/") > 1:
        raise ValueError(f"unexpected GroupVersion string: {given}")
    group, _, short = given.rpartition("/")
    if short:
        return given if group else short
    if group == default.rpartition("/")[0]:
        return default
    raise ValueError(f"Object 'apiVersion' is missing in '{data.decode('utf-8', 'replace')}'")


def check_kind(kind: str, version: str, resource: Resource) -> None:
    """Raises DecodeError for a kind that is unknown or cannot be converted to the resource's."""
    if kind == resource.kind and version == resource.api_version:
        return
    if not is_registered(kind, version):
        raise DecodeError(unregistered(kind, version))
    if kind != resource.kind:
        short = version.rpartition("/")[2]
        raise DecodeError(
            f"converting ({short}.{kind}) to ({resource.package}.{resource.kind}): "
            "unknown conversion"
        )


def unregistered(kind: str, version: str) -> str:
    return (
        f"no kind {go_quote(kind)} is registered for version {go_quote(version)} "
        f"in scheme {go_quote(SCHEME)}"
    )
