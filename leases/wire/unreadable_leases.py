"""Read at least the name of a Lease that cannot be decoded, so that all others can be followed.

Only broken or foreign API servers send such bytes. All of this runs after a decoder failed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress

import msgspec

from leases.domain.lease import MAX_NAME, MAX_NAMESPACE, MAX_UID, ObjectName, is_number
from leases.wire.watch_events import Deleted, Unreadable

_EVENT = re.compile(rb'\s*\{\s*"type"\s*:\s*"(ADDED|MODIFIED|DELETED|BOOKMARK)"\s*,\s*"object"')
# kube-apiserver's order of fields; names contain no character that JSON escapes.
_METADATA = re.compile(
    rb'"metadata"\s*:\s*\{\s*"name"\s*:\s*"(?P<name>[^"\\]+)"'
    rb'[^{}\[\]]*?"namespace"\s*:\s*"(?P<namespace>[^"\\]+)"'
    rb'(?:[^{}\[\]]*?"uid"\s*:\s*"(?P<uid>[^"\\]*)")?'
    rb'(?:[^{}\[\]]*?"resourceVersion"\s*:\s*"(?P<version>[0-9]*)")?'
)
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{}]')


def unreadable_event(line: bytes, error: BaseException) -> Unreadable | Deleted | None:
    """Return what is readable of a watch line; None: the line is no event and the stream is broken.

    Of a deletion only the name is needed.
    """
    begins = _EVENT.match(line)
    if begins is None:
        return None
    found = unreadable_lease(line, error)
    if found.key is None and not _is_json(line):
        return None
    if begins[1] == b"DELETED" and found.key is not None and found.resource_version:
        return Deleted(found.bare_lease())
    return found


def unreadable_lease(text: bytes, error: BaseException) -> Unreadable:
    """Return what is readable of one Lease, or of an event with one."""
    reason = f"It cannot be read: {error}."
    found = _METADATA.search(text)
    parts = {} if found is None else {k: v or b"" for k, v in found.groupdict().items()}
    meta = {name: part.decode("utf-8", "replace") for name, part in parts.items()}
    with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        meta = _metadata_in(msgspec.json.decode(text)) or meta
    name, namespace, uid, version = (
        meta.get(part, "") for part in ("name", "namespace", "uid", "version")
    )
    fits = len(namespace) <= MAX_NAMESPACE and len(name) <= MAX_NAME
    if not (fits and is_plain(namespace, name, "")):
        return Unreadable(None, reason, resource_version=version if is_number(version) else "")
    return Unreadable(
        key=ObjectName(namespace, name),
        reason=reason,
        uid=uid if is_plain(namespace, name, uid) and len(uid) <= MAX_UID else "",
        resource_version=version if is_number(version) else "",
    )


def is_plain(namespace: str, name: str, others: str) -> bool:
    """Whether this name can be used in a URL, in the log and in the database."""
    text = namespace + name + others
    return bool(namespace and name and text.isascii() and text.isprintable() and "/" not in text)


def _is_json(text: bytes) -> bool:
    """Whether the text is JSON, as far as a decoder can tell."""
    try:
        msgspec.json.decode(text)
    except RecursionError:
        return True
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return True


def _metadata_in(document: object) -> dict[str, str]:
    """Return the texts that identify the object; empty if there are none."""
    if isinstance(document, dict) and isinstance(document.get("object"), dict):
        document = document["object"]
    found = document.get("metadata") if isinstance(document, dict) else None
    if not isinstance(found, dict):
        return {}
    fields = {"name": "name", "namespace": "namespace", "uid": "uid", "version": "resourceVersion"}
    return {
        name: value for name, field in fields.items() if isinstance(value := found.get(field), str)
    }


def cut_list(body: bytes) -> tuple[bytes, list[bytes]] | None:
    """Split a list into its head and its items; None if it has no items.

    It counts brackets, because an item may be nested too deep for any decoder.
    """
    tokens = _tokens(body)
    depth, before = 0, b""
    for token, start in tokens:
        if token == b"[" and depth == 1 and before == b'"items"':
            items = list(_items(tokens))
            end = items[-1][1] if items else start + 1
            rest = body[: start + 1] + body[end:]
            return rest, [body[first:last] for first, last in items]
        depth += (token in b"[{") - (token in b"]}")
        before = token
    return None


def _items(tokens: Iterator[tuple[bytes, int]]) -> Iterator[tuple[int, int]]:
    """Yield start and end of each object in the array whose bracket was the last token."""
    depth = first = 0
    for token, start in tokens:
        if token in b"[{":
            if depth == 0:
                first = start
            depth += 1
        elif token in b"]}":
            depth -= 1
            if depth < 0:
                return
            if depth == 0:
                yield first, start + 1


def _tokens(body: bytes) -> Iterator[tuple[bytes, int]]:
    for match in _TOKEN.finditer(body):
        yield match[0], match.start()
