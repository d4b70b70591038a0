"""The Accept header, as goautoneg and kube-apiserver read it."""

from __future__ import annotations

import pytest

from leases.apiserver.http.negotiation import JSON, PROTOBUF, YAML, negotiate, parse_accept
from leases.wire.status import ApiError


@pytest.mark.parametrize(
    ("header", "media_type"),
    [
        (f"*/*, {YAML};q=0.1", YAML),
        (f"application/*;q=0.9, {YAML};q=0.1", YAML),
        (f"{YAML};q=0.1, */*", JSON),
        (f"{YAML};q=x, {JSON};q=0.1", JSON),
        (f"{YAML};q=0, {PROTOBUF};q=0.5, {JSON};q=0.9", JSON),
        (f"{YAML};q= 1, {JSON};q=0.1", JSON),
        (f"{YAML};q=0.5;q=0.1, {JSON};q=0.3", JSON),
        (f"*/json, {YAML}", YAML),
        (f"{JSON};stream=nope, {YAML}", YAML),
        (f"{YAML};stream=watch, {PROTOBUF}", PROTOBUF),
        (f"{JSON};sv=v2, {YAML};sv=v1", YAML),
        (f"{JSON};as=Table;g=meta.k8s.io, {YAML}", YAML),
        (f"{JSON};as=, {YAML}", JSON),
        (f"{JSON};as=a=b, {YAML}", JSON),
        (f"{JSON}/x, {YAML}", YAML),
        ("*", JSON),
    ],
)
def test_the_preferred_media_type(header: str, media_type: str) -> None:
    assert negotiate(header).media_type == media_type


@pytest.mark.parametrize("header", ["*/json", "text/*", ",", f"{JSON};v=v1", f"{JSON}/json"])
def test_what_accepts_nothing_of_ours(header: str) -> None:
    with pytest.raises(ApiError, match="only the following media types are accepted"):
        negotiate(header)


def test_more_specific_and_better_ranges_come_first() -> None:
    found = parse_accept("*/*, text/*;q=0.1, text/html;q=0.2, text/plain")
    assert [clause.subkind for clause in found] == ["plain", "html", "*", "*"]
    assert [clause.kind for clause in found] == ["text", "text", "text", "*"]
