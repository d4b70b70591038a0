"""Which addresses count as one client, and which are slowed."""

from __future__ import annotations

import pytest
from django.utils import timezone

from dashboard.access.security_log import client_address
from dashboard.access.sign_in_limits import COOL_OFF, SlowedAddresses

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("said", "counted"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("2001:db8:1:2::1", "2001:db8:1:2::"),
        ("unix", None),
        ("", None),
        (None, None),
    ],
)
def test_an_ipv6_network_counts_as_one_client(said, counted):
    assert client_address(said) == counted


def test_the_slowed_addresses_are_bounded(monkeypatch):
    monkeypatch.setattr("dashboard.access.sign_in_limits.MAX_ADDRESSES", 2)
    known, now = SlowedAddresses(), timezone.now()
    for name in ("a", "b", "c"):
        assert known.slow(name, now + COOL_OFF)
    assert not known.slow("c", now + COOL_OFF)
    assert known.remaining("a", now) is None
    assert known.remaining("c", now) == COOL_OFF
    assert known.remaining("c", now + COOL_OFF) is None
