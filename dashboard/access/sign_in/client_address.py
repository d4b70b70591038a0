"""Where a request comes from, for the count of sign-ins and for the audit trail.

Behind a proxy, uvicorn puts the address here that a trusted proxy names.
"""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address, ip_network

from django.http import HttpRequest

IPV6_PREFIX = 64  # one network, one client: each of its machines picks addresses as it likes


def client_address(text: str | None) -> str | None:
    """The address, or an IPv6 network by its first address; None for what is neither."""
    try:
        address = ip_address(text or "")
    except ValueError:
        return None
    if not isinstance(address, IPv6Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    network = ip_network((int(address), IPV6_PREFIX), strict=False)
    return str(network.network_address)


def full_address(text: str | None) -> str:
    """The address of one machine, IPv6 whole, for people to read; empty for what is none."""
    try:
        address = ip_address(text or "")
    except ValueError:
        return ""
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(mapped or address)


def address_of(request: HttpRequest) -> str | None:
    """For django-axes."""
    return client_address(request.META.get("REMOTE_ADDR"))
