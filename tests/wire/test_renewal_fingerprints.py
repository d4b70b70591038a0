"""A line whose mark is known says nothing that the decoder would not read in it."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leases.domain.lease import Lease
from leases.wire.microtime import format_microtime
from leases.wire.renewal_lines import Reader
from leases.wire.status import Gone
from leases.wire.watch_decoding import Applied, Renewed, read_event
from tests.support.values.leases import NOON

STREAMS = Path(__file__).parent.parent / "conformance" / "streams"
replace = msgspec.structs.replace

TRAPS = ["time", "renewTime", "resourceVersion", "managedFields", "spec", "a"]
ORDER = [
    "name", "namespace", "uid", "resourceVersion", "labels", "annotations", "managedFields",
    "holderIdentity", "leaseDurationSeconds", "acquireTime", "renewTime", "leaseTransitions",
]  # fmt: skip
texts = st.sampled_from(["", "x", "y", '"renewTime":"', '"spec":{', "2026-11-20T12:00:00Z"])
moments = st.sampled_from([None, *(format_microtime(NOON + timedelta(s)) for s in (0, 1))])


def moved(name: str, values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """A field that may be left out."""
    return values.map(lambda value: {} if value is None else {name: value})


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """Leases as the API server writes them, with keys where they mislead."""
    maps = st.none() | st.dictionaries(st.sampled_from(TRAPS), texts, max_size=3)
    times = st.sampled_from(["2026-11-20T12:00:00Z", "2026-11-20T12:00:01Z"])
    fields = st.none() | st.lists(
        st.fixed_dictionaries(
            {"manager": texts, "time": times, "fieldsV1": st.just({"f:spec": {}})}
        ),
        max_size=2,
    )
    return {
        "kind": "Lease",
        "metadata": {
            "name": draw(st.sampled_from(["a", "b"])),
            "namespace": "default",
            "uid": draw(st.sampled_from(["u", "v"])),
            "resourceVersion": draw(st.sampled_from(["1", "2", "10", "x"])),
            **draw(moved("labels", maps)),
            **draw(moved("annotations", maps)),
            **draw(moved("managedFields", fields)),
        },
        "spec": {
            **draw(moved("holderIdentity", st.none() | texts)),
            **draw(moved("leaseDurationSeconds", st.sampled_from([None, 15, 40]))),
            **draw(moved("acquireTime", moments)),
            **draw(moved("renewTime", moments | st.just("2026-11-20T12:00:00Z"))),
            **draw(moved("leaseTransitions", st.sampled_from([None, 0, 1]))),
        },
    }


def line(document: dict[str, Any], kind: str = "MODIFIED") -> bytes:
    return json.dumps({"type": kind, "object": document}, separators=(",", ":")).encode()


def but_renewed(lease: Lease) -> Lease:
    return Lease(replace(lease.metadata, resource_version=""), replace(lease.spec, renew_time=None))


def agrees(reported: Renewed, lease: Lease, known: dict[int, Lease]) -> bool:
    """Whether it holds what the decoder reads, and all else is as in that fingerprint's Lease."""
    return (
        (reported.resource_version, reported.renew_time)
        == (lease.resource_version, lease.spec.renew_time)
    ) and but_renewed(known[reported.fingerprint]) == but_renewed(lease)


@st.composite
def histories(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Writes of one Lease, each of which renews it and may change one thing beside."""
    found = [draw(documents())]
    for version in range(11, 14):
        old, other = found[-1], draw(documents())
        part = draw(st.sampled_from(["metadata", "spec"]))
        name = draw(st.sampled_from(["resourceVersion", *old[part], *other[part]]))
        new = {key: old[part].get(key) if key != name else other[part].get(key) for key in ORDER}
        after = {**old, part: {key: value for key, value in new.items() if value is not None}}
        after["metadata"] = after["metadata"] | {"resourceVersion": str(version)}
        if "renewTime" in after["spec"]:
            after["spec"] = after["spec"] | {"renewTime": draw(moments) or format_microtime(NOON)}
        found.append(after)
    return found


@given(histories())
@settings(max_examples=3 * settings.default.max_examples)
def test_undecoded_events_differ_only_in_version_and_renewal(
    found: list[dict[str, Any]],
) -> None:
    known: dict[int, Lease] = {}
    reader = Reader(known)
    for document in found:
        for body in (line(document), line(document, "ADDED")):
            reported, read = reader.read(body), read_event(body)
            assert isinstance(read, Applied)
            if isinstance(reported, Renewed):
                assert agrees(reported, read.lease, known)
                assert reported.line == body
            else:
                assert isinstance(reported, Applied)
                assert reported.lease == read.lease
                if reported.fingerprint:
                    assert known.setdefault(reported.fingerprint, reported.lease) == reported.lease


@pytest.mark.parametrize("stream", sorted(path.stem for path in STREAMS.glob("*.ndjson")))
def test_recorded_lines_are_read_as_the_decoder_reads_them(stream: str) -> None:
    known: dict[int, Lease] = {}
    reader = Reader(known)
    known_by_mark = 0
    for body in (STREAMS / f"{stream}.ndjson").read_bytes().splitlines():
        if stream == "gone-410":
            with pytest.raises(Gone):
                reader.read(body)
            continue
        reported, read = reader.read(body), read_event(body)
        if isinstance(reported, Renewed):
            assert isinstance(read, Applied)
            assert agrees(reported, read.lease, known)
            known_by_mark += 1
        elif isinstance(reported, Applied):
            assert isinstance(read, Applied)
            assert reported.lease == read.lease
            known[reported.fingerprint] = reported.lease
        else:
            assert reported == read
    assert known_by_mark or stream in {
        "gone-410",
        "initial-events",
        "coordinated-election-candidates",
    }


def test_a_lease_that_never_renews_has_no_mark() -> None:
    meta = {"name": "a", "namespace": "b", "resourceVersion": "1"}
    body = line({"metadata": meta, "spec": {}})
    assert Reader(()).read(body) == read_event(body)
