"""get and list: the requested state, its pages, and continue tokens.

Source: apiserver/pkg/storage/{continue.go,cacher,etcd3} and pkg/registry/generic/registry/store.go.
"""

import base64
import binascii
import posixpath
import re
from typing import Any

import msgspec

from leases.apiserver.codec import schema
from leases.apiserver.codec.decoding import Decoder
from leases.apiserver.codec.go_json import JsonError, dumps, loads, type_word
from leases.apiserver.errors import ResumableError, bad_request, expired, future_version, internal
from leases.apiserver.http.options import EXACT, ListOptions
from leases.apiserver.registry.events import CORE_EVENTS, EVENTS
from leases.apiserver.registry.pods_and_nodes import NODES, PODS, SERVICES
from leases.apiserver.resources import CANDIDATES, CLE_GATE, LEASES, NAMESPACES, Resource
from leases.apiserver.storage.journal import Version
from leases.apiserver.storage.store import ObjectStore
from leases.wire.selectors import exact_name, parse_uint
from leases.wire.status import go_quote

FUTURE_WAIT = 3.0
_TOKEN_VERSION = "meta.k8s.io/v1"  # noqa: S105 - a version, no secret
_TOKEN = schema.Structure(
    "continueToken",
    {
        "v": schema.Field(schema.TEXT),
        "rv": schema.Field(schema.INT64),
        "start": schema.Field(schema.TEXT),
    },
)
_TOO_OLD = "The resourceVersion for the provided list is too old."
_PAGE_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can "
    "start a new list "
    "without the continue parameter, or use the continue token in this response to retrieve the "
    "remainder of the "
    "results. Continuing with the provided token results in an inconsistent list - objects that "
    "were created, "
    "modified, or deleted between the time the first chunk was returned and now may show up in "
    "the list."
)


class StoredPage(msgspec.Struct, frozen=True):
    """Some versions, and the ListMeta that belongs to them."""

    versions: list[Version]
    meta: dict[str, Any]


def parse_version(text: str) -> int:
    """A resourceVersion as a number. Raises ValueError with kube-apiserver's message."""
    if not text:
        return 0
    try:
        return parse_uint(text)
    except ValueError as error:
        raise ValueError(f"resourceVersion: Invalid value: {go_quote(text)}: {error}") from None


async def wait_for_version(store: ObjectStore, text: str) -> None:
    """Wait until the store has this version. Raises 500 for no number and 504 after the wait."""
    try:
        version = parse_version(text)
    except ValueError as error:
        raise internal(str(error)) from None
    await _reach(store, version)


async def _reach(store: ObjectStore, version: int) -> None:
    if version > store.revision and not await store.reached(version, within=FUTURE_WAIT):
        raise future_version(version, store.revision)


class Start(msgspec.Struct, frozen=True):
    """Where a page begins: after which key, in which state (-1: the present one)."""

    after: str
    revision: int


async def list_page(
    store: ObjectStore, resource: str, namespace: str, options: ListOptions
) -> StoredPage:
    """One page. Raises 400, 410 and 504."""
    prefix = f"{namespace}/" if namespace else ""
    start = _decode_token(options.token) if options.token else None
    if start is not None and options.version not in ("", "0"):
        raise bad_request("specifying resource version is not allowed when using continue")
    try:
        asked = parse_version(options.version)
    except ValueError as error:
        raise bad_request(f"invalid resource version: {error}") from None
    limit = 0 if options.version == "0" else max(options.limit, 0)
    exact = options.match == EXACT or (limit > 0 and asked > 0 and not options.match)
    if start is not None:
        revision, found = _continued(store, resource, prefix, start)
        return _cut(found, prefix, options, limit, revision, start.after)
    await _reach(store, asked)
    if exact:
        if asked < store.floor:
            raise expired(_TOO_OLD)
        found = store.versions_at(resource, prefix, asked)
        return _cut(found, prefix, options, limit, asked, "")
    name = exact_name(options.selector.fields)
    if name is not None and namespace:
        one = store.get(resource, namespace, name)
        found = [] if one is None else [one]
    else:
        found = store.versions(resource, prefix)
    return _cut(found, prefix, options, limit, store.revision, "")


def _continued(
    store: ObjectStore, resource: str, prefix: str, start: Start
) -> tuple[int, list[Version]]:
    if start.revision < 0:
        return store.revision, store.versions(resource, prefix)
    if start.revision > store.revision:
        raise future_version(start.revision, store.revision)
    if start.revision < store.floor:
        resume = encode_token(start.after, -1)
        raise ResumableError(expired(_PAGE_TOO_OLD).status, resume=resume)
    return start.revision, store.versions_at(resource, prefix, start.revision)


def _cut(
    found: list[Version],
    prefix: str,
    options: ListOptions,
    limit: int,
    revision: int,
    after: str,
) -> StoredPage:
    selector = options.selector
    if after:
        found = [version for version in found if version.key[len(prefix) :] >= after]
    meta: dict[str, Any] = {"resourceVersion": str(revision)}
    if not limit and selector.empty:
        return StoredPage(found, meta)
    chosen: list[Version] = []
    for index, version in enumerate(found):
        if selector.selects(version):
            chosen.append(version)
        if limit and len(chosen) == limit:
            rest = len(found) - index - 1
            if rest:
                meta["continue"] = encode_token(f"{version.key[len(prefix) :]}\0", revision)
                if selector.empty:
                    meta["remainingItemCount"] = rest
            break
    return StoredPage(chosen, meta)


def encode_token(start: str, revision: int) -> str:
    """The continue token for objects at or after `start` (a key below the list's prefix)."""
    value = {"v": _TOKEN_VERSION, "rv": revision, "start": start}
    return base64.urlsafe_b64encode(dumps(value)).rstrip(b"=").decode()


def _decode_token(text: str) -> Start:
    """Raises 400 with the message of storage.DecodeContinue."""
    try:
        return _read_token(text)
    except ValueError as error:
        raise bad_request(f"invalid continue token: continue key is not valid: {error}") from None


def _read_token(text: str) -> Start:
    bad = re.search(r"[^A-Za-z0-9_-]", text)
    if bad is not None or len(text) % 4 == 1:
        at = bad.start() if bad is not None else len(text) - 1
        raise ValueError(f"illegal base64 data at input byte {at}")
    try:
        data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        value = loads(data)
    except (JsonError, binascii.Error) as error:
        raise ValueError(str(error)) from None
    if value is not None and not isinstance(value, dict):
        into = "Go value of type storage.continueToken"
        raise ValueError(f"json: cannot unmarshal {type_word(value)} into {into}")
    token = Decoder().decode({} if value is None else value, _TOKEN)
    version, revision, start = token.get("v", ""), token.get("rv", 0), token.get("start", "")
    if version != _TOKEN_VERSION:
        raise ValueError(f"server does not recognize this encoded version {version}")
    if revision == 0:
        raise ValueError(f"incorrect encoded start resourceVersion (version {_TOKEN_VERSION})")
    if not start:
        raise ValueError(f"encoded start key empty (version {_TOKEN_VERSION})")
    rooted = start if start.startswith("/") else f"/{start}"
    if posixpath.normpath(rooted) != rooted:
        raise ValueError(start)
    return Start(rooted[1:], revision)


def served(gates: frozenset[str]) -> tuple[Resource, ...]:
    """The resources of a server with these feature gates on."""
    candidates = (CANDIDATES,) if CLE_GATE in gates else ()
    return (LEASES, *candidates, CORE_EVENTS, NAMESPACES, NODES, PODS, SERVICES, EVENTS)
