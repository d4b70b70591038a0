"""PATCH: JSON patch, merge patch, strategic merge patch and apply, by content type.

Source: apiserver/pkg/endpoints/handlers/patch.go.
"""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from leases.apiserver import errors
from leases.apiserver.codec import decoding, schema
from leases.apiserver.codec.go_json import JsonError, dumps, loads, type_word, unrepeated
from leases.apiserver.codec.go_values import go_text
from leases.apiserver.http.bodies import check_kind, kind_in
from leases.apiserver.http.options import WriteOptions, write_options
from leases.apiserver.http.request import Request, RequestTarget
from leases.apiserver.patch.apply import Apply, Configuration, read_applied
from leases.apiserver.patch.json_patch import PatchError, json_patch, merge_patch, operations_error
from leases.apiserver.patch.strategic_merge import StrategicError, strategic_merge
from leases.apiserver.registry.create_update import Writer, Written, check_sent
from leases.apiserver.resources import Resource
from leases.apiserver.storage.journal import now_text
from leases.wire.status import ApiError, StatusDetails, bad_value, go_quote

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
PATCH_TYPES = (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH)
MAX_OPERATIONS = 10_000
_MAP = "map[string]interface {}"
_BAD_PATCH = "Invalid JSON Patch"
_OPERATION_FIELDS = ("op", "path", "from", "value")
Object = dict[str, Any]


class Patcher:
    """Patches through one writer."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    async def patch(self, request: Request, place: RequestTarget) -> Written:
        """Raises 400, 404, 409, 413, 422 and 500."""
        kind = request.header(b"content-type").partition(";")[0].strip()
        data = await request.body()
        options = write_options(request, "PatchOptions", apply=kind == APPLY_PATCH)
        one = _Patch(request, place, data, options)
        ways: dict[str, tuple[Callable[[], Any], Callable[[Object | None, Any], Object]]] = {
            JSON_PATCH: (one.operations, one.json),
            MERGE_PATCH: (one.merge_map, one.merge),
            STRATEGIC_PATCH: (one.strategic_map, one.strategic),
            APPLY_PATCH: (one.config, one.apply),
        }
        read, change = ways[kind]
        sent = await decoding.aside(len(data), _attempt, read)

        def wanted(old: Object | None) -> Object:
            if old is None and kind != APPLY_PATCH:
                raise errors.not_found(place.resource.plural, place.name, place.resource.group)
            if isinstance(sent, ApiError):
                raise sent
            new = change(old, sent)
            check_sent(place, new, request.warn)
            return new

        tracks = kind != APPLY_PATCH
        return await self._writer.update(place, wanted, options, tracks=tracks, size=len(data))


def _attempt(read: Callable[[], Any]) -> Any:
    """The result, or the error: a missing object is the error that counts first."""
    try:
        return read()
    except ApiError as error:
        return error


class _Patch:
    """One patch body and its result."""

    def __init__(
        self, request: Request, place: RequestTarget, data: bytes, options: WriteOptions
    ) -> None:
        self._request = request
        self._resource = place.resource
        self._name = place.name
        self._data = data
        self._options = options
        self._strict = options.validation in ("Warn", "Strict")
        self._before = "error decoding patch: " if self._strict else ""

    def _typed(self, old: Object) -> Object:
        head = {"kind": self._resource.kind, "apiVersion": self._resource.api_version}
        return head | old

    def operations(self) -> tuple[list[Any], list[str]]:
        """The operations of a JSON patch, and the errors of strict decoding."""
        try:
            operations = loads(self._data)
        except JsonError as error:
            raise errors.bad_request(f"{self._before}{error}") from None
        if operations is None:
            operations = []
        complaints = self._check_operations(operations)
        if len(operations) > MAX_OPERATIONS:
            raise errors.too_large(
                f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, "
                f"got {len(operations)}"
            )
        return operations, complaints

    def json(self, old: Object | None, sent: tuple[list[Any], list[str]]) -> Object:
        operations, complaints = sent
        try:
            patched = json_patch(self._typed(old or {}), operations)
        except PatchError:
            raise _rejected() from None
        return self._decoded(patched, complaints)

    def _check_operations(self, operations: Any) -> list[str]:
        """The errors of strict decoding. Raises 400."""
        if wrong := operations_error(operations, strict=self._strict):
            raise errors.bad_request(f"{self._before}json: cannot unmarshal {wrong}")
        return [
            f"json patch {text}"
            for index, operation in enumerate(operations)
            for text in decoding.repeated_fields(operation, f"[{index}]", known=_OPERATION_FIELDS)
        ]

    def merge_map(self) -> Object | list[Any]:
        """The patch. Only strict decoding refuses a list, which then is the result."""
        try:
            patch = loads(self._data)
        except JsonError as error:
            why = f"{self._before}{error}" if self._strict else _BAD_PATCH
            raise errors.bad_request(why) from None
        if isinstance(patch, dict) or (isinstance(patch, list) and not self._strict):
            return patch
        if patch is None or not self._strict:
            raise errors.bad_request(_BAD_PATCH)
        raise self._no_map(patch)

    def merge(self, old: Object | None, patch: Object | list[Any]) -> Object:
        target = self._typed(old or {}) if isinstance(patch, dict) else None
        return self._decoded(merge_patch(target, patch), decoding.repeated_fields(patch, ""))

    def _no_map(self, patch: Any) -> ApiError:
        word = type_word(patch)
        return errors.bad_request(
            f"{self._before}json: cannot unmarshal {word} into Go value of type {_MAP}"
        )

    def strategic_map(self) -> Object:
        self._before = ""
        try:
            patch = loads(self._data)
        except JsonError as error:
            raise errors.bad_request(str(error)) from None
        if patch is not None and not isinstance(patch, dict):
            raise self._no_map(patch)
        return patch or {}

    def strategic(self, old: Object | None, sent: Object) -> Object:
        complaints = decoding.repeated_fields(sent, "")
        patch = unrepeated(sent)
        original = deepcopy(self._typed(old or {}))
        try:
            patched = strategic_merge(original, patch, self._resource.schema)
        except StrategicError as error:
            if error.code == 400:
                raise errors.bad_request(str(error)) from None
            raise (_rejected() if error.code == 422 else errors.internal(str(error))) from None
        shown = go_text(patch)
        decoder = decoding.UnstructuredDecoder()
        try:
            new = decoder.decode(patched, self._resource.schema)
        except decoding.DecodeError as error:
            raise _unfit(shown, str(error)) from None
        # Source of the order: runtime.FromUnstructuredWithValidation.
        self._complain(shown, complaints + sorted(decoder.strict))
        return _untyped(new)

    def config(self) -> Configuration:
        return read_applied(self._data, self._resource)

    def apply(self, old: Object | None, sent: Configuration) -> Object:
        resource, options = self._resource, self._options
        change = Apply(resource.schema, resource.api_version, options.manager, now_text())
        merged = change.merge(old, sent.value, force=bool(options.force))
        try:
            new = _untyped(decoding.UnstructuredDecoder().decode(merged, resource.schema))
        except decoding.DecodeError as error:
            raise errors.internal(
                f"failed to convert new object {sent.shown(resource)} to proper version: unable to "
                f"convert unstructured object to {resource.api_version}, Kind={resource.kind}: "
                f"{error}"
            ) from None
        self._complain_of_keys(sent.duplicates)
        meta = new["metadata"]
        if not meta["managedFields"]:
            del meta["managedFields"]
        if old is None and (uid := meta.get("uid")):
            why = f"uid mismatch: the provided object specified uid {uid}, and no existing object"
            raise errors.conflict(resource.plural, self._name, f"{why} was found", resource.group)
        return new

    def _complain_of_keys(self, duplicates: list[str]) -> None:
        if duplicates and self._options.validation == "Strict":
            lines = "".join(f"\n  {line}" for line in duplicates)
            before = "error strict decoding YAML: error converting YAML to JSON"
            raise errors.bad_request(f"{before}: yaml: unmarshal errors:{lines}")
        if self._options.validation == "Warn":
            for line in duplicates:
                self._request.warn(line)

    def _decoded(self, patched: Any, complaints: list[str]) -> Object:
        """The object of a patched document. Raises 422 on `patch` with the whole document."""
        resource = self._resource
        text = dumps(_plain(patched))
        shown = text.decode()
        internal_version = f"{resource.group}/__internal" if resource.group else "__internal"
        decoder = decoding.Decoder()
        try:
            kind, version = kind_in(patched, resource.kind, internal_version, text)
            if version == internal_version and kind == resource.kind:
                new = _decoded_internal(decoder, patched, resource)
            else:
                check_kind(kind, version, resource)
                new = _untyped(decoder.decode(patched, resource.schema))
        except ValueError as error:
            raise _unfit(shown, str(error)) from None
        self._complain(shown, complaints + decoder.strict)
        return new

    def _complain(self, shown: str, complaints: list[str]) -> None:
        if self._options.validation == "Strict" and complaints:
            raise _unfit(shown, f"strict decoding error: {', '.join(complaints)}")
        if self._options.validation == "Warn":
            for complaint in complaints:
                self._request.warn(complaint)


def _decoded_internal(decoder: decoding.Decoder, value: Object, resource: Resource) -> Object:
    """The object of a document without apiVersion.

    Go decodes it into the internal type, whose metadata has no name: its fields are the object's.
    """
    meta = decoder.decode(value, schema.INTERNAL_OBJECT)
    return {name: {} for name in resource.schema.required} | {"metadata": _untyped(meta)}


def _untyped(obj: Object) -> Object:
    return {name: value for name, value in obj.items() if name not in ("kind", "apiVersion")}


def _plain(value: Any) -> Any:
    """Numbers that msgspec cannot encode as they were written, as plain floats."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return float(value) if isinstance(value, float) else value


def _rejected() -> Exception:
    message = "the server rejected our request due to an error in our request"
    return errors.failure(422, "Invalid", message, StatusDetails())


def _unfit(shown: str, why: str) -> Exception:
    return errors.invalid("", "", [bad_value("patch", go_quote(shown), why)], "")
