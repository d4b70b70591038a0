"""Parse the text of one setting, or raise a ValueError that says what to write instead.

No error repeats the text: it may contain a password.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from urllib.parse import urlsplit

import dj_database_url

MAX_RETENTION_DAYS = 36_500  # a million days ago is before Python's first date
MAX_DRAIN_SECONDS = 600
MAX_COUNT = 10**12
MAX_SECONDS = 366 * 24 * 3600
MAX_MILLISECONDS = 3_600_000
MIN_SECRET_KEY = 32
MAX_HEADER = 60  # characters of a header's name
EVERY_CLUSTER = "*"
_ROLES = ("operator", "admin")
_HEADER = re.compile(r"[A-Za-z0-9]+(-[A-Za-z0-9]+)*")
_CLUSTER = re.compile(r"[a-z0-9][-a-z0-9]*")
_HOST = re.compile(r"\*|\.?([\w-]+\.)*[\w-]+\.?|\[[0-9a-fA-F:.]+\]")
_DATABASE_FORM = "write sqlite:///PATH or postgresql://USER:PASSWORD@HOST/NAME"
_POSTGRESQL = ("postgres", "postgresql")


Network = IPv4Network | IPv6Network


def read_path(value: str) -> Path:
    if not value.strip():
        raise ValueError("name a directory, or leave it out")
    try:
        return Path(value).expanduser().resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise ValueError("write a path that this machine can have") from error


def read_flag(value: str) -> bool:
    words = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
    if value.lower() not in words:
        raise ValueError("write true or false")
    return words[value.lower()]


def read_read_only(value: str) -> tuple[str, ...]:
    """Return the names of clusters; EVERY_CLUSTER for all, () for none."""
    try:
        return (EVERY_CLUSTER,) if read_flag(value) else ()
    except ValueError:
        names = _listed(value)
    if not names or not all(_CLUSTER.fullmatch(name) for name in names):
        raise ValueError("write true, false, or the names of clusters, such as prod,staging")
    return names


def read_days(value: str) -> int:
    return _number(value, "days", 1, MAX_RETENTION_DAYS)


def read_rows(value: str) -> int:
    return _number(value, "changes", 1, MAX_COUNT)


def read_count(value: str) -> int:
    return _number(value, "elections", 0, MAX_COUNT)


def read_seconds(value: str) -> int:
    return _number(value, "seconds", 1, MAX_SECONDS)


def read_milliseconds(value: str) -> int:
    return _number(value, "milliseconds", 0, MAX_MILLISECONDS)


def read_drain_seconds(value: str) -> int:
    return _number(value, "seconds", 0, MAX_DRAIN_SECONDS)


def read_log_format(value: str) -> str:
    if value not in ("text", "json"):
        raise ValueError("write text or json")
    return value


def read_hosts(value: str) -> tuple[str, ...]:
    hosts = _listed(value)
    if not hosts:
        raise ValueError("name at least one host, such as board.example.com")
    if not all(_HOST.fullmatch(host) for host in hosts):
        raise ValueError(
            "write host names alone, without scheme, port and path, such as board.example.com, "
            ".example.com, 10.0.0.7 or [::1]"
        )
    return hosts


def read_origins(value: str) -> tuple[str, ...]:
    origins = _listed(value)
    if not all(map(_is_origin, origins)):
        raise ValueError("write each with its scheme and host alone, such as https://x.example.com")
    return origins


def read_url(value: str) -> str:
    """Read the public address of the pages, without a slash at its end."""
    if value and not _is_origin(value.rstrip("/")):
        raise ValueError("write scheme and host alone, such as https://leases.example.com")
    return value.rstrip("/")


def read_networks(value: str) -> tuple[Network, ...]:
    try:
        networks = tuple(ip_network(part) for part in _listed(value))
    except ValueError as error:
        raise ValueError(
            "write IP addresses or networks, such as 10.0.0.7 or 10.1.0.0/16, comma-separated"
        ) from error
    if any(network.prefixlen == 0 for network in networks):
        raise ValueError("a network of all addresses would let everybody name any user")
    return networks


def read_header(value: str) -> str:
    if len(value) > MAX_HEADER or not _HEADER.fullmatch(value):
        raise ValueError("write the name of a header, such as X-Forwarded-User")
    return value


def read_roles(value: str) -> tuple[tuple[str, str], ...]:
    """Return pairs of a group and its role. A group may contain `=`, but no comma."""
    pairs = [part.rpartition("=") for part in _listed(value)]
    if not all(group.strip() and role.strip() in _ROLES for group, _, role in pairs):
        raise ValueError("write GROUP=operator or GROUP=admin, comma-separated")
    return tuple((group.strip(), role.strip()) for group, _, role in pairs)


def read_secret_key(value: str) -> str:
    if len(value.strip()) < MIN_SECRET_KEY:
        raise ValueError(
            f"write {MIN_SECRET_KEY} random characters or more, or leave it out: then a key is "
            "made and kept in the data directory"
        )
    return value


def read_token(value: str) -> str:
    if value and not (value.isascii() and value.isprintable() and " " not in value):
        raise ValueError("a bearer token is of ASCII characters without blanks")
    return value


def read_database_url(value: str) -> str:
    """Check the form only; `serve` connects to the database at the start."""
    if not value:
        return value
    try:
        url = urlsplit(value)
        parsed = dj_database_url.parse(value)
        port = url.port
    except (ValueError, dj_database_url.ParseError, dj_database_url.UnknownSchemeError) as error:
        raise ValueError(
            f"{_DATABASE_FORM}, and % and two digits for each sign of the password that ends a URL"
        ) from error
    name = str(parsed.get("NAME") or "")
    if url.scheme == "sqlite" and (url.netloc or not name or name == ":memory:"):
        raise ValueError("write sqlite:///PATH, with the path of a file")
    if url.scheme in _POSTGRESQL and (not name or "\0" in value or "%00" in value or port == 0):
        raise ValueError(_DATABASE_FORM)
    if url.scheme not in ("sqlite", *_POSTGRESQL) or "://" not in value:
        raise ValueError(_DATABASE_FORM)
    return value


def _listed(value: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in value.split(",") if part.strip())


def _number(value: str, what: str, least: int, most: int) -> int:
    digits = value.isascii() and value.isdecimal() and len(value) <= len(str(most))
    if not digits or not least <= int(value) <= most:
        raise ValueError(f"write a whole number of {what} from {least} to {most:,}")
    return int(value)


def _is_origin(origin: str) -> bool:
    try:
        url = urlsplit(origin)
        _ = url.port
    except ValueError:
        return False
    alone = not (url.path or url.query or url.fragment or url.username or url.password)
    return url.scheme in ("http", "https") and bool(url.hostname) and alone
