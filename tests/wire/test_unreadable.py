"""A Lease that cannot be read is named, and hides no other."""

from __future__ import annotations

import contextlib
import json

import pytest

from leases.domain.lease import ObjectName
from leases.wire.renewal_lines import Reader
from leases.wire.status import Unreachable
from leases.wire.watch_decoding import (
    Applied,
    Bookmark,
    Deleted,
    Renewed,
    Unreadable,
    cut_list,
    read_event,
    read_page,
)

DEPTH = 100_000  # levels that no Python decodes: 3.11 ends at 1,000, 3.13 at 10,000
DEEP = "[" * DEPTH + "]" * DEPTH


def odd(*, meta: str = "", spec: str = "") -> str:
    """A Lease as the API server writes it, with JSON of its own in metadata and spec."""
    return (
        '{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"odd",'
        '"namespace":"ns","uid":"u-1","resourceVersion":"17","creationTimestamp":null'
        f"{meta}}},"
        f'"spec":{{"holderIdentity":"a"{spec}}}}}'
    )


ODD = [
    odd(spec=',"leaseDurationSeconds":"15"'),
    odd(spec=',"strategy":5'),
    odd(meta=',"labels":[]'),
    odd(meta=f',"managedFields":{DEEP}'),
    odd(spec=f',"more":{DEEP}'),
    odd(spec=f',"leaseTransitions":{2**70}'),
    odd(spec=f',"leaseDurationSeconds":{2**31}'),
    odd(spec=f',"leaseDurationSeconds":-{2**31 + 1}'),
    odd(spec=f',"leaseTransitions":{"9" * 5000}'),
    odd(spec=',"leaseTransitions":1e400'),
    odd(spec=',"leaseTransitions":NaN'),
    odd(spec=',"more":-Infinity'),
    odd(spec=',"renewTime":"yesterday"'),
    odd(spec=',"renewTime":"2026-11-20T12:04:23.000001"'),  # without an offset
    odd(spec=',"acquireTime":"2026-02-30T00:00:00.000000Z"'),
    odd(spec=',"strategy":"\\ud800"'),  # half of a pair
]
NAMELESS = [
    odd().replace('"name":"odd"', '"name":""'),
    odd().replace('"name":"odd"', '"name":"a/b"'),
    odd().replace('"name":"odd"', '"name":"a\\u0000b"'),
    odd().replace('"name":"odd"', f'"name":"{"a" * 254}"'),
    odd().replace('"namespace":"ns",', ""),
    odd().replace('"ns"', f'"{"n" * 64}"'),
]


@pytest.mark.parametrize("text", ODD, ids=range(len(ODD)))
@pytest.mark.parametrize("kind", ["ADDED", "MODIFIED"])
def test_an_event_that_cannot_be_read_names_its_lease(text: str, kind: str) -> None:
    event = read_event(f'{{"type":"{kind}","object":{text}}}'.encode())
    assert isinstance(event, Unreadable)
    assert (event.key, event.uid, event.resource_version) == (ObjectName("ns", "odd"), "u-1", "17")
    assert event.reason.startswith("It cannot be read: ")


def test_a_deletion_is_readable_by_its_name_alone() -> None:
    event = read_event(f'{{"type":"DELETED","object":{ODD[0]}}}'.encode())
    assert isinstance(event, Deleted)
    assert (event.lease.key, event.lease.uid) == (ObjectName("ns", "odd"), "u-1")
    assert event.resource_version == "17"


@pytest.mark.parametrize("text", NAMELESS, ids=range(len(NAMELESS)))
def test_an_unusable_name_counts_as_none(text: str) -> None:
    event = read_event(f'{{"type":"MODIFIED","object":{text}}}'.encode())
    assert isinstance(event, Unreadable)
    assert event.key is None
    body = f'{{"metadata":{{"resourceVersion":"9"}},"items":[{text},{odd()}]}}'
    page = read_page(body.encode())
    assert [lease.metadata.name for lease in page.leases] == ["odd"]
    assert [one.key for one in page.unreadable] == [None]


@pytest.mark.parametrize("version", ["9" * 5000, "9" * 33, "1\\u0000"])
def test_an_invalid_version_reads_as_none(version: str) -> None:
    text = odd().replace('"17"', f'"{version}"')
    event = read_event(f'{{"type":"MODIFIED","object":{text}}}'.encode())
    assert isinstance(event, Unreadable)
    assert event.resource_version == ""
    bookmark = f'{{"type":"BOOKMARK","object":{{"metadata":{{"resourceVersion":"{version}"}}}}}}'
    with contextlib.suppress(Unreachable):
        assert isinstance(read_event(bookmark.encode()), Unreadable | Bookmark)


def test_a_renewal_known_by_its_bytes_is_held_to_the_same_rules() -> None:
    fields = ',"managedFields":[{"time":"2026-11-20T12:04:23Z"}]'
    good = odd(meta=fields, spec=',"renewTime":"2026-11-20T12:04:23.000001Z"')
    reader = Reader(known := set[int]())
    first = reader.read(f'{{"type":"MODIFIED","object":{good}}}'.encode())
    assert isinstance(first, Applied)
    known.add(first.fingerprint)
    later = good.replace('"17"', '"18"')
    assert isinstance(reader.read(f'{{"type":"MODIFIED","object":{later}}}'.encode()), Renewed)
    for other in (
        good.replace(":23.000001Z", ":23.0+01:00"),
        good.replace(":23.000001Z", ":23.0000000"),
        good.replace('"17"', f'"{"9" * 20}"'),
    ):
        read = reader.read(f'{{"type":"MODIFIED","object":{other}}}'.encode())
        assert not isinstance(read, Renewed)


def test_an_event_without_a_readable_name_is_still_one() -> None:
    event = read_event(b'{"type":"ADDED","object":{"metadata":{"name":5}}}')
    assert isinstance(event, Unreadable)
    assert (event.key, event.resource_version) == (None, "")


@pytest.mark.parametrize("text", ODD, ids=range(len(ODD)))
def test_a_list_with_an_unreadable_lease_has_all_others(text: str) -> None:
    good = [odd().replace('"odd"', f'"{name}"') for name in ("a", "b")]
    items = f" {good[0]} , {text},{good[1]}"
    body = f'{{"kind":"LeaseList","metadata":{{"resourceVersion":"9"}},"items":[{items}]}}'
    page = read_page(body.encode())
    assert [lease.metadata.name for lease in page.leases] == ["a", "b"]
    assert [one.key for one in page.unreadable] == [ObjectName("ns", "odd")]
    assert page.metadata.resource_version == "9"


def test_brackets_and_quotes_in_text_do_not_cut_a_list() -> None:
    items = [json.dumps({"metadata": {"name": text}}) for text in ('"]}', "a\\", '\\"[{', "items")]
    body = f'{{"a":["items"],"items":[{",".join(items)}],"metadata":{{"resourceVersion":"9"}}}}'
    cut = cut_list(body.encode())
    assert cut is not None
    assert cut[1] == [item.encode() for item in items]
    assert json.loads(cut[0]) == {"a": ["items"], "items": [], "metadata": {"resourceVersion": "9"}}


@pytest.mark.parametrize("body", [b"[]", b'{"items":{}}', b"", b'{"metadata":{"items":[{}]}}'])
def test_a_document_without_items_is_not_cut(body: bytes) -> None:
    assert cut_list(body) is None


def test_a_list_of_something_else_is_no_list() -> None:
    with pytest.raises(Unreachable, match="no Lease API answer"):
        read_page(b'{"metadata":{},"items":[{"metadata":7}]}')
