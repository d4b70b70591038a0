"""Versions by semver.org, section 11."""

from __future__ import annotations

import pytest

from leases.domain.election import parse_version, precedence

# https://semver.org/#spec-item-11, from low to high.
ORDER = [
    "1.0.0-0", "1.0.0-2", "1.0.0-10", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta",
    "1.0.0-beta", "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0-rc.1", "1.0.0", "1.0.1", "1.2.0",
    "1.10.0", "2.1.1", "10.0.0",
]  # fmt: skip


def test_versions_come_in_the_order_of_the_specification() -> None:
    versions = [parse_version(text) for text in ORDER]
    ranks = [precedence(version) for version in versions if version is not None]
    assert len(ranks) == len(ORDER)
    assert ranks == sorted(ranks)
    assert len(set(ranks)) == len(ORDER)


def test_build_metadata_is_left_out() -> None:
    assert parse_version("1.32.4+k3s1.2") == (1, 32, 4, ())
    assert parse_version("1.2.3-rc.1+build.05") == (1, 2, 3, ("rc", "1"))
    assert parse_version("1.2.3-a00.0.0a") == (1, 2, 3, ("a00", "0", "0a"))
    assert parse_version("1.2.3-0.10.x") == (1, 2, 3, ("0", "10", "x"))


@pytest.mark.parametrize(
    "text",
    ["", "1", "1.2", "1.2.3.4", "v1.2.3", "01.2.3", "1.02.3", "1.2.3-", "1.2.3-a..b", "1.2.3-01",
     "1.2.3-012", "1.2.3-a.00", "1.2.3+", "1.2.3+a..b", "1.2.3+.", " 1.2.3"],
)  # fmt: skip
def test_an_invalid_semver_is_none(text: str) -> None:
    assert parse_version(text) is None
