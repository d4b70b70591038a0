"""Lines of a watch and bodies of a list become values."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from leases.domain.steady_clock import EARLIEST, LATEST
from leases.wire.status import ApiError, Gone, Unreachable
from leases.wire.watch_decoding import Applied, Bookmark, Deleted, read_event, read_lease, read_page

STREAMS = Path(__file__).parent.parent / "conformance" / "streams"


def lease(**spec: Any) -> dict[str, Any]:
    meta = {
        "name": "kube-scheduler",
        "namespace": "kube-system",
        "uid": "u",
        "resourceVersion": "7",
    }
    return {"kind": "Lease", "metadata": meta, "spec": spec}


def event(kind: str, content: dict[str, Any]) -> bytes:
    return json.dumps({"type": kind, "object": content}).encode()


def lines_of(name: str) -> list[bytes]:
    return (STREAMS / f"{name}.ndjson").read_bytes().splitlines()


@pytest.mark.parametrize("kind", ["ADDED", "MODIFIED"])
def test_added_and_modified_are_both_applied(kind: str) -> None:
    spec = {"holderIdentity": "a", "renewTime": "2026-11-20T12:04:23.000001Z"}
    read = read_event(event(kind, lease(**spec)))
    assert isinstance(read, Applied)
    assert str(read.lease.key) == "kube-system/kube-scheduler"
    assert read.lease.holder == "a"
    assert read.lease.spec.renew_time == datetime(2026, 11, 20, 12, 4, 23, 1, tzinfo=UTC)


def test_a_deletion_carries_the_lease_as_it_was() -> None:
    read = read_event(event("DELETED", lease(holderIdentity="a")))
    assert isinstance(read, Deleted)
    assert read.lease.holder == "a"


def test_a_bookmark_moves_the_version() -> None:
    meta: dict[str, Any] = {"resourceVersion": "9", "creationTimestamp": None}
    assert read_event(event("BOOKMARK", {"metadata": meta, "spec": {}})) == Bookmark("9")
    meta["annotations"] = {"k8s.io/initial-events-end": "true"}
    assert read_event(event("BOOKMARK", {"metadata": meta, "spec": {}})) == Bookmark("9")


def test_a_recorded_410_is_raised_as_gone() -> None:
    with pytest.raises(Gone, match="too old resource version: 1") as raised:
        read_event(lines_of("gone-410")[0])
    assert raised.value.status.code == 410


def test_an_error_event_of_another_kind_is_raised_with_its_status() -> None:
    with pytest.raises(ApiError, match="etcd is away") as raised:
        read_event(
            event("ERROR", {"code": 500, "reason": "InternalError", "message": "etcd is away"})
        )
    assert raised.value.status.code == 500


@pytest.mark.parametrize(
    "garbage",
    [
        b"<html>",
        b"{}",
        b'{"type":"ADDED"}',
        b'{"type":"MOVED","object":{}}',
        b'{"type":"ADDED","object":{"metadata":{}},"items":7}{',
        b"\xff\xfe",
        b'"\xff"',
    ],
)
def test_garbage_is_no_answer_and_the_error_quotes_it(garbage: bytes) -> None:
    with pytest.raises(Unreachable, match="no Lease API answer") as raised:
        read_event(garbage)
    assert raised.value.status.code == 0


@pytest.mark.parametrize(
    ("moment", "nearest"),
    [
        ("-0001-12-30T23:59:59.000000Z", EARLIEST),
        ("0000-01-01T00:00:00.000000Z", EARLIEST),
        ("0001-01-01T00:00:00.000000+02:00", EARLIEST),
        ("9999-12-31T23:59:59.999999-02:00", LATEST),
        ("10000-01-01T00:59:59.999999Z", LATEST),
    ],
)
def test_a_time_beyond_our_calendar_counts_as_its_end_and_hides_nothing_else(
    moment: str, nearest: datetime
) -> None:
    odd = lease(holderIdentity="a", renewTime=moment, acquireTime="2026-11-20T12:04:23.000001Z")
    read = read_event(event("ADDED", odd))
    assert isinstance(read, Applied)
    assert read.lease.spec.renew_time == nearest
    assert read.lease.spec.renew_time.tzinfo is UTC
    assert read.lease.spec.acquire_time is not None
    assert read_lease(json.dumps(odd).encode()) == read.lease
    page = {"metadata": {"resourceVersion": "9"}, "items": [lease(holderIdentity="b"), odd]}
    assert [one.holder for one in read_page(json.dumps(page).encode()).leases] == ["b", "a"]


@pytest.mark.parametrize("name", [path.stem for path in sorted(STREAMS.glob("*.ndjson"))])
def test_every_recorded_stream_can_be_read_to_its_end(name: str) -> None:
    lines = lines_of(name)
    assert lines
    for line in lines:
        said = json.loads(line)
        if said["type"] == "ERROR":
            continue
        read = read_event(line)
        version = (
            read.resource_version if isinstance(read, Bookmark) else read.lease.resource_version
        )
        assert version == said["object"]["metadata"]["resourceVersion"]


def test_a_page_of_a_list_names_where_the_next_begins() -> None:
    meta = {"resourceVersion": "12", "continue": "abc", "remainingItemCount": 3}
    page = read_page(json.dumps({"metadata": meta, "items": [lease()]}).encode())
    assert page.metadata.resource_version == "12"
    assert page.metadata.next_page == "abc"
    assert page.metadata.remaining == 3
    assert len(page.leases) == 1


def test_a_list_without_items_is_empty_whether_null_or_none() -> None:
    assert read_page(b'{"metadata":{"resourceVersion":"1"},"items":null}').leases == ()
    assert read_page(b'{"metadata":{"resourceVersion":"1"},"items":[]}').leases == ()
