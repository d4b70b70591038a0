"""Describe a failure between us and a cluster in one sentence that says what to do."""

from __future__ import annotations

import os
import ssl

import aiohttp

from leases.wire.status import (
    ApiError,
    Forbidden,
    Gone,
    TooManyRequests,
    Unauthorized,
    Unreachable,
)


def unreachable(host: str, error: BaseException, *, within: float | None = None) -> Unreachable:
    """Make the error for a request without a whole answer; `within` is the limit in seconds."""
    return Unreachable(_sentence(host, error, within))


def advise(host: str, error: ApiError) -> str:
    """Return the sentence for a page whose cluster cannot be watched."""
    said = str(error).rstrip(".")
    if isinstance(error, Unauthorized):
        return (
            f"{host} does not accept our credentials ({said}). "
            "Renew the token or client certificate; Leaseboard reads it again by itself."
        )
    if isinstance(error, Forbidden):
        return f"{said}. Grant get, list and watch on leases.coordination.k8s.io in all namespaces."
    if isinstance(error, Gone):
        return f"{said}. Leaseboard lists all Leases again."
    if isinstance(error, TooManyRequests):
        return f"{host} is overloaded and asks us to wait ({said})."
    if error.status.code:
        return f"{host} answered {error.status.code}: {said}. Check the health of the API server."
    return str(error)


def _sentence(host: str, error: BaseException, within: float | None) -> str:
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"Cannot find the machine of {host}. Check the address and the name service."
    if isinstance(error, aiohttp.ClientSSLError | ssl.SSLError):
        return (
            f"{host} and Leaseboard do not trust each other ({_cause(error)}). "
            "Check the certificate authority and the client certificate."
        )
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"Cannot reach {host}: {_cause(error)}. Check that the API server runs."
    if isinstance(error, TimeoutError):
        limit = f" within {within:g} s" if within else ""
        return f"{host} did not answer{limit}. Check the network and the API server's load."
    return f"The connection to {host} broke: {_cause(error)}. Leaseboard connects again by itself."


def _cause(error: BaseException) -> str:
    if isinstance(error, aiohttp.ClientPayloadError):
        return "it was cut in the middle of an answer"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "it was closed without an answer"
    number = error.errno if isinstance(error, OSError) else None
    # asyncio's text repeats the address; the system's text is enough.
    if number and number > 0 and not isinstance(error, ssl.SSLError):
        return os.strerror(number).lower()
    return " ".join(str(error).split()).rstrip(".") or type(error).__name__
