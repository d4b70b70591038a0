"""Every setting: one environment variable, one field, one line of help. README lists the same ones.

A wrong value stops the start and names the variable and the value.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from dashboard.clusters import ClusterSpec, parse_clusters
from leases.kube.kubeconfig import files_of

PREFIX = "LEASEBOARD_"
DEFAULT_CLUSTERS = "embedded=embedded"


class ConfigError(ValueError):
    """A setting has a value that cannot be used; the text says which and what to write instead."""


def _text(value: str) -> str:
    return value


def _path(value: str) -> Path:
    return Path(value).expanduser().resolve()


def _flag(value: str) -> bool:
    words = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
    if value.lower() not in words:
        raise ValueError("write true or false")
    return words[value.lower()]


def _days(value: str) -> int:
    if not value.isdecimal() or int(value) < 1:
        raise ValueError("write a whole number of days, 1 or more")
    return int(value)


def _count(value: str) -> int:
    if not value.isdecimal():
        raise ValueError("write a whole number, 0 or more")
    return int(value)


def _rows(value: str) -> int:
    if not value.isdecimal() or int(value) < 1:
        raise ValueError("write a whole number of changes, 1 or more")
    return int(value)


def _hosts(value: str) -> tuple[str, ...]:
    return tuple(host.strip() for host in value.split(",") if host.strip())


def _origins(value: str) -> tuple[str, ...]:
    origins = _hosts(value)
    for origin in origins:
        if not origin.startswith(("http://", "https://")):
            raise ValueError(f"write {origin!r} with its scheme, such as https://{origin}")
    return origins


def _database_url(value: str) -> str:
    if value and not value.startswith(("sqlite:", "postgres:", "postgresql:")):
        raise ValueError("write sqlite:///PATH or postgresql://USER:PASSWORD@HOST/NAME")
    return value


def _setting(parse: Callable[[str], Any], default: Any, text: str) -> Any:
    return field(default=default, metadata={"parse": parse, "help": text})


@dataclass(frozen=True, kw_only=True)
class Config:
    """Settings of one process. Each field is the environment variable LEASEBOARD_<FIELD>."""

    data: Path = _setting(_path, Path("data").resolve(), "directory for database, keys, kubeconfig")
    database_url: str = _setting(
        _database_url, "", "where history is kept; unset: SQLite in the data directory"
    )
    clusters: tuple[ClusterSpec, ...] = _setting(
        parse_clusters,
        parse_clusters(DEFAULT_CLUSTERS),
        "NAME=SOURCE, comma-separated, as with --cluster",
    )
    kubeconfig: tuple[Path, ...] = _setting(
        files_of,
        (),
        "kubeconfig files for context: sources; unset: KUBECONFIG, else ~/.kube/config",
    )
    secret_key: str = _setting(
        _text, "", "signs sessions and links; unset: made once and kept in the data directory"
    )
    allowed_hosts: tuple[str, ...] = _setting(
        _hosts, ("localhost", "127.0.0.1", "[::1]"), "host names the pages answer to"
    )
    trusted_origins: tuple[str, ...] = _setting(
        _origins, (), "origins (with scheme) that may send forms and open sockets through a proxy"
    )
    https: bool = _setting(
        _flag, False, "true behind TLS: secure cookies, HSTS and redirects to https"
    )
    metrics_elections: int = _setting(
        _count, 2000, "elections of each cluster told one by one in /metrics"
    )
    metrics_token: str = _setting(
        _text, "", "bearer token that /metrics asks for; unset: none, as /healthz"
    )
    retention_days: int = _setting(_days, 90, "how long changes are kept")
    retention_rows: int = _setting(_rows, 5_000_000, "how many changes are kept, the newest")


def load(environ: Mapping[str, str] | None = None) -> Config:
    """Read the settings. Raises ConfigError for an unknown name or a value that cannot be used."""
    environ = os.environ if environ is None else environ
    known = {PREFIX + item.name.upper(): item for item in fields(Config)}
    values: dict[str, Any] = {}
    for name, value in environ.items():
        if not name.startswith(PREFIX):
            continue
        if name not in known:
            raise ConfigError(f"{name} is not a setting; the settings are {', '.join(known)}.")
        try:
            values[known[name].name] = known[name].metadata["parse"](value)
        except ValueError as error:
            sentence = str(error).rstrip(".")
            raise ConfigError(f"{name} cannot be {value!r}: {sentence}.") from error
    if not values.get("kubeconfig") and environ.get("KUBECONFIG"):
        values["kubeconfig"] = files_of(environ["KUBECONFIG"])
    return Config(**values)
