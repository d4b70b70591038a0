"""The address of a receiver, with its secrets."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Sort(StrEnum):
    WEBHOOK = "webhook"
    SLACK = "slack"
    ALERTMANAGER = "alertmanager"
    EMAIL = "email"


class Security(StrEnum):
    """How the connection to a mail server is encrypted."""

    STARTTLS = "starttls"
    TLS = "tls"
    NONE = "none"


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """`url` and `secret` are of HTTP; the rest is of e-mail."""

    url: str = ""
    secret: str = ""  # signs a webhook; the bearer token of Alertmanager
    host: str = ""
    port: int = 587
    security: Security = Security.STARTTLS
    username: str = ""
    password: str = ""
    sender: str = ""
    to: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return "Target([hidden])"
