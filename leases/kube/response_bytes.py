"""What aiohttp knows of a response that is being read, and shows in no documented way.

A watch must tell bytes that have arrived from bytes that it has read, and it asks the kernel to
notice a dead connection. aiohttp documents neither the count of a StreamReader nor the transport of
a Connection, so pyproject.toml pins aiohttp to the minor version that has these parts, and
tests/kube/test_response_bytes.py fails when a version has others.
"""

from __future__ import annotations

import socket

import aiohttp


def arrived_bytes(response: aiohttp.ClientResponse) -> int:
    """How many bytes of the body have arrived, read or not."""
    return response.content.total_bytes


def socket_of(response: aiohttp.ClientResponse) -> socket.socket | None:
    """The socket of a response whose body has not ended."""
    transport = response.connection.transport if response.connection else None
    return transport.get_extra_info("socket") if transport else None
