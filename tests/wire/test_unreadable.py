"""A Lease that cannot be read is named, and hides no other."""

from __future__ import annotations

import json

import pytest

from leases.domain.lease import ObjectName
from leases.wire.events import Deleted, Unreadable
from leases.wire.status import Unreachable
from leases.wire.unreadable import cut_list
from leases.wire.watch import read_event, read_page

DEEP = "[" * 5000 + "]" * 5000


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
]


@pytest.mark.parametrize("text", ODD, ids=range(len(ODD)))
@pytest.mark.parametrize("kind", ["ADDED", "MODIFIED"])
def test_an_event_that_cannot_be_read_names_its_lease(text: str, kind: str) -> None:
    event = read_event(f'{{"type":"{kind}","object":{text}}}'.encode())
    assert isinstance(event, Unreadable)
    assert (event.key, event.uid, event.resource_version) == (ObjectName("ns", "odd"), "u-1", "17")
    assert event.reason.startswith("It cannot be read: ")


def test_of_a_deletion_the_name_is_enough() -> None:
    event = read_event(f'{{"type":"DELETED","object":{ODD[0]}}}'.encode())
    assert isinstance(event, Deleted)
    assert (event.lease.key, event.lease.uid) == (ObjectName("ns", "odd"), "u-1")
    assert event.resource_version == "17"


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
def test_what_has_no_items_is_not_cut(body: bytes) -> None:
    assert cut_list(body) is None


def test_a_list_of_something_else_is_no_list() -> None:
    with pytest.raises(Unreachable, match="no Lease API answer"):
        read_page(b'{"metadata":{},"items":[{"metadata":7}]}')
