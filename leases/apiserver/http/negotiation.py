"""Content negotiation: the Accept header, pretty printing, and the bytes of an answer.

Source: apiserver/pkg/endpoints/handlers/negotiation and go-restful's matching of Produces.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import msgspec

from leases.apiserver.codec import protobuf
from leases.apiserver.codec.go_json import dumps, dumps_pretty
from leases.apiserver.codec.yaml_input import YamlError
from leases.apiserver.codec.yaml_output import to_yaml
from leases.apiserver.errors import internal, not_acceptable
from leases.wire.status import ApiError, StatusDetails

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = protobuf.MEDIA_TYPE
PRODUCED = (JSON, YAML, PROTOBUF)
STREAMED = (f"{JSON};stream=watch", protobuf.STREAM_TYPE)
_BROWSERS = ("curl", "Wget", "Mozilla/5.0")
_TRUE = {"1", "t", "T", "TRUE", "true", "True"}
_CONVERSIONS = {"Table", "PartialObjectMetadata", "PartialObjectMetadataList"}
_META_GROUP = "meta.k8s.io"


class Output(msgspec.Struct, frozen=True):
    """How to answer: the media type, a conversion ("Table" or the Partial ones) and its version."""

    media_type: str = JSON
    convert: str = ""
    version: str = "v1"
    pretty: bool = False


class MediaRange(msgspec.Struct, frozen=True):
    """One media range of an Accept header."""

    kind: str
    subkind: str
    quality: float
    params: dict[str, str]


_PLAIN = Output()
_PLAIN_ACCEPTS = (JSON, "", "*/*")


def parse_accept(header: str) -> list[MediaRange]:
    """The media ranges, preferred ones first. Source: goautoneg.ParseAccept."""
    clauses: list[MediaRange] = []
    for part in header.split(","):
        first, *pieces = part.strip(" ").split(";")
        kind, _, subkind = first.partition("/")
        subkind, _, rest = subkind.partition("/")
        kind = kind.strip(" ")
        if rest or (not subkind and kind != "*"):
            continue
        quality, params = 1.0, {}
        for name, value in _parameters(pieces):
            if name == "q":
                quality = _quality(value)
            else:
                params[name] = value.strip(" ")
        clauses.append(MediaRange(kind, subkind.strip(" ") or "*", quality, params))
    for end in range(1, len(clauses)):
        _sink(clauses, end)
    return clauses


def _parameters(pieces: list[str]) -> Iterator[tuple[str, str]]:
    """Names and values. Go ignores a parameter without a value, or with a second `=`."""
    for piece in pieces:
        name, _, value = piece.partition("=")
        value, _, rest = value.partition("=")
        if value and not rest:
            yield name.strip(" "), value


def _sink(clauses: list[MediaRange], at: int) -> None:
    """One step of Go's insertion sort: the order depends on it, for "better" is no order."""
    while at and _is_better(clauses[at], clauses[at - 1]):
        clauses[at - 1], clauses[at] = clauses[at], clauses[at - 1]
        at -= 1


def _is_better(one: MediaRange, other: MediaRange) -> bool:
    """A named type comes before a wildcard, whatever their qualities are."""
    return (
        one.quality > other.quality
        or (one.kind != "*" and other.kind == "*")
        or (one.subkind != "*" and other.subkind == "*")
    )


def _quality(text: str) -> float:
    """0 for what is no number. Source: strconv.ParseFloat."""
    try:
        return 0.0 if text != text.strip() or "_" in text else float(text)
    except ValueError:
        return 0.0


@lru_cache(maxsize=64)
def check_produced(accept: str, produced: tuple[str, ...] = PRODUCED) -> None:
    """Raise 406 as the router does when the header names nothing that the route produces."""
    if accept in _PLAIN_ACCEPTS:
        return
    for part in accept.split(","):
        kind = part.partition(";")[0].strip()
        if kind == "*/*" or kind in produced:
            return
    message = f"406: Not Acceptable\n\nAvailable representations: {', '.join(produced)}"
    raise not_acceptable(message, StatusDetails())


@lru_cache(maxsize=64)
def negotiate(
    accept: str, media_types: tuple[str, ...] = PRODUCED, *, converts: bool = True
) -> Output:
    """The representation that the client prefers among `media_types`. Raises 406.

    `converts`: whether an answer can become a table or metadata alone.
    """
    if accept in _PLAIN_ACCEPTS:
        return _PLAIN
    for clause in parse_accept(accept):
        for media_type in media_types:
            output = _options(clause.params, media_type) if fits(clause, media_type) else None
            if output is not None and (converts or not output.convert):
                return output
    raise not_acceptable(f"only the following media types are accepted: {', '.join(media_types)}")


def negotiate_error(accept: str) -> Output:
    """The representation of an error: pretty JSON when none fits."""
    try:
        return negotiate(accept, converts=False)
    except ApiError:
        return Output(pretty=True)


def fits(clause: MediaRange, media_type: str) -> bool:
    kind, _, subkind = media_type.partition("/")
    if clause.kind == "*":
        return clause.subkind == "*"
    return clause.kind == kind and clause.subkind in ("*", subkind)


def _options(params: dict[str, str], media_type: str) -> Output | None:
    """Source: acceptMediaTypeOptions. `sv` is the version of the server's own types."""
    streams = ("watch",) if media_type != YAML else ()
    if params.get("stream") not in (None, *streams) or params.get("sv") not in (None, "v1"):
        return None
    pretty = params.get("pretty") == "1"
    if not {"as", "g", "v"} & params.keys():
        return Output(media_type, pretty=pretty)
    convert, version = params.get("as", ""), params.get("v", "")
    known = convert in _CONVERSIONS and version in ("v1", "v1beta1")
    if not known or params.get("g") != _META_GROUP:
        return None
    if convert == "Table" and media_type == PROTOBUF:
        return None
    return Output(media_type, convert, version, pretty)


def wants_pretty(query: str | None, agent: str, output: Output) -> bool:
    """`query` is the value of ?pretty, if given."""
    if output.pretty:
        return True
    if query:
        return query in _TRUE
    return _is_browser(agent)


def _is_browser(agent: str) -> bool:
    """Whether a User-Agent gets pretty JSON by default."""
    return agent.startswith(_BROWSERS)


def encode(value: Any, output: Output, *, pretty: bool) -> bytes:
    """An answer's bytes in the negotiated form. Raises 500 for text that YAML cannot hold."""
    if output.media_type == PROTOBUF:
        return protobuf.encode_object(value)
    if output.media_type == YAML:
        try:
            return to_yaml(value)
        except YamlError as error:
            raise internal(str(error)) from None
    return dumps_pretty(value) if pretty else dumps(value) + b"\n"
