"""Visitors who come through an authenticating proxy, or pretend to."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import ip_network
from typing import Any

import pytest
from django.conf import settings
from django.http import HttpRequest
from django.test import Client
from django.test.client import ClientHandler

from dashboard.access.proxy import PEER, refused_lately

PROXY, STRANGER = "10.20.0.1", "192.0.2.7"
NAMED = {"X-Forwarded-User": "pia", "X-Forwarded-Groups": "all, watchers"}


def set_proxy(monkeypatch: pytest.MonkeyPatch, **more: Any) -> None:
    """Trust the headers of PROXY; its group watchers makes operators, deciders admins."""
    refused_lately._kept.clear()
    given = {
        "proxy_addresses": (ip_network("10.20.0.0/24"),),
        "proxy_roles": (("watchers", "operator"), ("deciders", "admin")),
    }
    monkeypatch.setattr(settings, "LEASEBOARD", replace(settings.LEASEBOARD, **given | more))


def scope_of(headers: dict[str, str], *, peer: str = PROXY, client: str = "") -> dict[str, Any]:
    """What `serve` tells of a connection from `peer`; uvicorn believes that it is `client`."""
    raw = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()]
    return {"headers": raw, PEER: peer, "client": (client or peer, 1)}


class _Handler(ClientHandler):
    def __init__(self, scope: dict[str, Any]) -> None:
        super().__init__(enforce_csrf_checks=False)
        self._scope = scope

    def get_response(self, request: HttpRequest) -> Any:
        request.scope = self._scope  # type: ignore[attr-defined]  # as an ASGIRequest has one
        return super().get_response(request)


class ProxyBrowser(Client):
    """A browser with the proxy's headers, at the other end of `peer`."""

    def __init__(
        self, named: dict[str, str] | None = None, *, peer: str = PROXY, client: str = ""
    ) -> None:
        super().__init__()
        scope = scope_of(NAMED if named is None else named, peer=peer, client=client)
        self.handler = _Handler(scope)
