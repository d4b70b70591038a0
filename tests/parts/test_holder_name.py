"""How a holder is drawn: what may shrink, what must not, and what is quiet."""

from __future__ import annotations

import pytest

from dashboard.parts.names import HUES, SHORT, holder_view

UUID = "8c2e41f0-5b1d-4f0e-9a57-2d9a3c1b7e44"


@pytest.mark.parametrize(
    ("identity", "host", "tail", "quiet"),
    [
        (f"cp-1_{UUID}", "cp-1", "", f"_{UUID}"),
        ("ebs-csi-controller-6f9f9c5b4-hx7wl", "ebs-csi-controller-6f9f9c5b4", "-hx7wl", ""),
        (f"keda-operator-5c9f8b7d4-8tr2m_{UUID}", "keda-operator-5c9f8b7d4", "-8tr2m", f"_{UUID}"),
        ("cert-manager-7d5b9c8f6d-x2x7k-leader", "cert-manager-7d5b9c8f6d", "-x2x7k", "-leader"),
        ("ip-10-65-41-118.eu-central-1", "ip-10-65-41-118", "", ".eu-central-1"),
        ("10.65.41.118", "10.65.41.118", "", ""),
        ("cp-3-LmZyBnQdRe", "cp-3", "", "-LmZyBnQdRe"),
        ("default/web-0", "default/web-0", "", ""),
        (UUID, UUID, "", ""),
    ],
)
def test_an_identity_falls_into_its_parts(identity, host, tail, quiet):
    view = holder_view(identity)
    assert (view.host, view.tail, view.id) == (host, tail, quiet)
    assert view.host + view.tail + view.id == identity


def test_an_empty_holder_is_no_holder():
    assert holder_view("") is None
    assert holder_view(None) is None


def test_two_processes_of_one_host_have_one_hue():
    one, other = holder_view("cp-1_0123abcd"), holder_view(f"cp-1_{UUID}")
    assert one.hue == other.hue
    assert 1 <= one.hue <= HUES


def test_a_shortened_holder_keeps_the_tail_that_distinguishes_pods():
    view = holder_view("opentelemetry-operator-controller-manager-5b97d6f4c8-kd2xs")
    assert view.short == "opentelemetry-operator-…-kd2xs"
    assert len(view.short) == SHORT


@pytest.mark.parametrize(
    ("identity", "ends"),
    [
        ("cp-1", ("cp-1", "")),
        ("web-59d4c9cf7d-l4xvb", ("web-59d4c9cf7d", "-l4xvb")),
        (f"jenkins-agent-eu-central-1-0_{UUID}", ("jenkins-agent-eu-centr", "al-1-0")),
    ],
)
def test_a_long_host_keeps_its_end(identity, ends):
    assert holder_view(identity).ends == ends
