"""Every setting is one environment variable and one field; docs/operations.md lists them.

A wrong value stops the start; the message names the variable and the value.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from dashboard.access.redaction import passwords_in, without_credentials
from dashboard.configuration.cluster_specs import ClusterSpec, parse_clusters
from dashboard.configuration.setting_values import (
    EVERY_CLUSTER,
    Network,
    read_count,
    read_database_url,
    read_days,
    read_drain_seconds,
    read_flag,
    read_header,
    read_hosts,
    read_log_format,
    read_milliseconds,
    read_networks,
    read_origins,
    read_path,
    read_read_only,
    read_roles,
    read_rows,
    read_seconds,
    read_secret_key,
    read_token,
    read_url,
)
from leases.kube.kubeconfig import files_of

PREFIX = "LEASEBOARD_"
MAX_SHOWN = 100  # characters of a wrong value that a message repeats
DEFAULT_CLUSTERS = "embedded=embedded"


class ConfigError(ValueError):
    """An unusable value of a setting; the text names both and says what to write instead."""


def _setting(
    parse: Callable[[str], Any],
    default: Any,
    text: str,
    *,
    secret: bool = False,
    credentials: bool = False,
) -> Any:
    """`secret`: no message may show the value. `credentials`: a part of the value is secret."""
    metadata = {"parse": parse, "help": text, "secret": secret}
    return field(default=default, repr=not (secret or credentials), metadata=metadata)


@dataclass(frozen=True, kw_only=True)
class Config:
    """Settings of one process. Each field is the environment variable LEASEBOARD_<FIELD>."""

    data: Path = _setting(
        read_path, Path("data").resolve(), "directory for database, keys, kubeconfig"
    )
    database_url: str = _setting(
        read_database_url,
        "",
        "where history is kept; unset: SQLite in the data directory",
        credentials=True,
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
        read_secret_key,
        "",
        "signs sessions and links; unset: made once and kept in the data directory",
        secret=True,
    )
    allowed_hosts: tuple[str, ...] = _setting(
        read_hosts, ("localhost", "127.0.0.1", "[::1]"), "host names the pages answer to"
    )
    trusted_origins: tuple[str, ...] = _setting(
        read_origins,
        (),
        "origins (with scheme) that may send forms and open sockets through a proxy",
    )
    url: str = _setting(
        read_url, "", "public address of the pages, for links in messages; unset: no links"
    )
    https: bool = _setting(
        read_flag, False, "true behind TLS: secure cookies, HSTS and redirects to https"
    )
    proxy_addresses: tuple[Network, ...] = _setting(
        read_networks, (), "addresses of the proxy that signs people in by its headers"
    )
    proxy_user_header: str = _setting(
        read_header, "X-Forwarded-User", "header in which that proxy names the user"
    )
    proxy_groups_header: str = _setting(
        read_header, "X-Forwarded-Groups", "header in which it lists the user's groups"
    )
    proxy_roles: tuple[tuple[str, str], ...] = _setting(
        read_roles, (), "GROUP=ROLE, comma-separated: roles that the proxy's groups give"
    )
    metrics_elections: int = _setting(
        read_count, 2000, "elections of each cluster with series of their own in /metrics"
    )
    metrics_token: str = _setting(
        read_token,
        "",
        "bearer token that /metrics requires; unset: none",
        secret=True,
    )
    reason_required: bool = _setting(
        read_flag, True, "false: a change of a Lease can be saved without a reason"
    )
    read_only: tuple[str, ...] = _setting(
        read_read_only, (), "true: no cluster is written to; or names of clusters, comma-separated"
    )
    impersonate: bool = _setting(
        read_flag, False, "true: clusters are asked to take a write for the signed-in person's"
    )
    abandoned_seconds: int = _setting(
        read_seconds, 3600, "how long a Lease is vacant before it counts as abandoned"
    )
    slow_seconds: int = _setting(
        read_seconds, 10, "a request that takes longer, with its wait, is a line of the log"
    )
    slow_statement_ms: int = _setting(
        read_milliseconds, 2000, "a database statement that takes longer is a line of the log"
    )
    log_format: str = _setting(read_log_format, "text", "text or json: log lines on stderr")
    drain_seconds: int = _setting(
        read_drain_seconds, 1, "how long /readyz fails after SIGTERM before sockets are closed"
    )
    retention_days: int = _setting(read_days, 90, "how long changes are kept")
    retention_rows: int = _setting(read_rows, 5_000_000, "number of newest changes that are kept")
    reliability_days: int = _setting(
        read_days, 1100, "how long the totals of the reliability page are kept"
    )


def _shown(value: str) -> str:
    shown = without_credentials(value)
    return repr(shown if len(shown) <= MAX_SHOWN else f"{shown[:MAX_SHOWN]}…")


def secrets_of(config: Config) -> list[str]:
    """The values that no log line and no message may contain."""
    tokens = [spec.source.token for spec in config.clusters]
    return [config.secret_key, config.metrics_token, *tokens, *passwords_in(config.database_url)]


def check_read_only(names: tuple[str, ...], clusters: tuple[ClusterSpec, ...]) -> None:
    """Raise ConfigError for a name that no cluster has: it would leave its cluster writable."""
    watched = [spec.name for spec in clusters]
    unknown = [name for name in names if name not in (EVERY_CLUSTER, *watched)]
    if unknown:
        raise ConfigError(
            f"LEASEBOARD_READ_ONLY names {unknown[0]!r}, which is not watched: write true, or "
            f"names among {', '.join(watched)}."
        )


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
            hidden = known[name].metadata["secret"]
            what = "used" if hidden else _shown(value)
            raise ConfigError(f"{name} cannot be {what}: {str(error).rstrip('.')}.") from None
    if not values.get("kubeconfig") and environ.get("KUBECONFIG"):
        values["kubeconfig"] = files_of(environ["KUBECONFIG"])
    return Config(**values)
