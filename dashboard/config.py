"""Every setting is one environment variable and one field; docs/operations.md lists them.

No error repeats the text: it may contain a password.

A wrong value stops the start; the message names the variable and the value.
"""

import os
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import dj_database_url

from dashboard.log_lines import passwords_in, without_credentials
from leases.kube.cluster_source import FORMS, ClusterSource, SourceKind, files_of, parse_source

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?")

_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_HARMLESS = re.compile(r"[\w.= -]{0,64}")


@dataclass(frozen=True)
class ClusterSpec:
    """One Lease API to watch: its short name in URLs and rows, and its source."""

    name: str
    source: ClusterSource


class ClusterLabel(NamedTuple):
    """What a cluster is called beside its name, such as prod:env=prod."""

    cluster: str
    key: str
    value: str


@dataclass(frozen=True)
class SecretsPlace:
    """Where Secrets name clusters: an API server, and one of its namespaces."""

    source: ClusterSource
    namespace: str


OWN_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


def read_secrets_source(text: str) -> ClusterSource | None:
    if not text:
        return None
    source = parse_source(text)
    if source.kind is SourceKind.EMBEDDED:
        raise ValueError("the embedded Lease API serves no Secrets: write in-cluster")
    return source


def read_namespace(text: str) -> str:
    if text and not _NAMESPACE.fullmatch(text):
        raise ValueError("write the name of a namespace, such as leaseboard")
    return text


def parse_cluster(text: str) -> ClusterSpec:
    """Parse NAME=SOURCE. Raises ValueError, which says how to write it."""
    name, equals, source = text.strip().partition("=")
    if not equals or not source:
        raise ValueError(f"write {_shown_spec(text, 'each')} as NAME=SOURCE, with SOURCE {FORMS}")
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"the cluster name {_shown_spec(name, 'before =')} must be 1 to 32 of a-z, 0-9 and -, "
            "not at either end"
        )
    try:
        return ClusterSpec(name, parse_source(source))
    except ValueError as error:
        raise ValueError(f"cluster {name}: {error}") from None


def _shown_spec(text: str, otherwise: str) -> str:
    """The text, unless it could contain a token: then `otherwise`."""
    return repr(text) if _HARMLESS.fullmatch(text) else otherwise


def parse_clusters(text: str) -> tuple[ClusterSpec, ...]:
    """Parse NAME=SOURCE[,NAME=SOURCE...]. Raises ValueError."""
    specs = tuple(parse_cluster(part) for part in text.split(",") if part.strip())
    return check_clusters(specs)


def check_clusters(specs: tuple[ClusterSpec, ...]) -> tuple[ClusterSpec, ...]:
    """Return the clusters. Raises ValueError for none, and for two of one name."""
    names = [spec.name for spec in specs]
    if not names:
        raise ValueError("name at least one cluster, such as embedded=embedded")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"the cluster name {twice[0]!r} is given twice; give each its own")
    if sum(spec.source.kind is SourceKind.EMBEDDED for spec in specs) > 1:
        raise ValueError("there is one embedded Lease API; only one cluster can be embedded")
    return specs


MAX_RETENTION_DAYS = 36_500  # a million days ago is before Python's first date
MAX_DRAIN_SECONDS = 600
MAX_COUNT = 10**12
MAX_SECONDS = 366 * 24 * 3600
MAX_HSTS_SECONDS = 2 * MAX_SECONDS
MAX_MILLISECONDS = 3_600_000
MIN_SECRET_KEY = 32
MAX_HEADER = 60  # characters of a header's name
EVERY_CLUSTER = "*"
_ROLES = ("operator", "admin")
_HEADER = re.compile(r"[A-Za-z0-9]+(-[A-Za-z0-9]+)*")
_CLUSTER = re.compile(r"[a-z0-9][-a-z0-9]*")
_LABEL = re.compile(
    r"([a-z0-9][-a-z0-9]*):([a-z][-a-z0-9_.]{0,62})=([A-Za-z0-9][-A-Za-z0-9_.]{0,62})", re.ASCII
)
# Parameters of pages over several clusters, where each label is one too.
TAKEN = (
    "at", "before", "by", "cause", "change", "cluster", "format", "from", "going_on", "holder",
    "inferred", "key", "kind", "lease", "limit", "namespace", "page", "q", "range", "show", "since",
    "to", "until", "view",
)  # fmt: skip
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


def read_labels(value: str) -> tuple[ClusterLabel, ...]:
    """Return the labels of clusters, in their order."""
    found = [_LABEL.fullmatch(part) for part in _listed(value)]
    if not all(found):
        raise ValueError("write NAME:LABEL=VALUE, such as prod:env=prod, comma-separated")
    labels = tuple(ClusterLabel(*one.groups()) for one in found if one)
    taken = next((one.key for one in labels if one.key in TAKEN), "")
    if taken:
        raise ValueError(f"{taken} has a meaning in URLs; give the label another name")
    twice = Counter((one.cluster, one.key) for one in labels).most_common(1)
    if twice and twice[0][1] > 1:
        raise ValueError(f"{':'.join(twice[0][0])} is given twice; give it one value")
    return labels


def read_days(value: str) -> int:
    return _number(value, "days", 1, MAX_RETENTION_DAYS)


def read_rows(value: str) -> int:
    return _number(value, "changes", 1, MAX_COUNT)


def read_count(value: str) -> int:
    return _number(value, "elections", 0, MAX_COUNT)


def read_seconds(value: str) -> int:
    return _number(value, "seconds", 1, MAX_SECONDS)


def read_hsts_seconds(value: str) -> int:
    return _number(value, "seconds", 0, MAX_HSTS_SECONDS)


def read_milliseconds(value: str) -> int:
    return _number(value, "milliseconds", 0, MAX_MILLISECONDS)


def read_drain_seconds(value: str) -> int:
    return _number(value, "seconds", 0, MAX_DRAIN_SECONDS)


def read_print_links(value: str) -> str:
    if value not in ("terminal", "always", "never"):
        raise ValueError("write terminal, always or never")
    return value


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
    cluster_labels: tuple[ClusterLabel, ...] = _setting(
        read_labels, (), "NAME:LABEL=VALUE, comma-separated: labels that group and filter clusters"
    )
    kubeconfig: tuple[Path, ...] = _setting(
        files_of,
        (),
        "kubeconfig files for context: sources; unset: KUBECONFIG, else ~/.kube/config",
    )
    cluster_secrets: ClusterSource | None = _setting(
        read_secrets_source,
        None,
        "SOURCE whose Secrets name more clusters, such as in-cluster; unset: none",
        credentials=True,
    )
    cluster_secrets_namespace: str = _setting(
        read_namespace, "", "namespace of those Secrets; unset: the pod's own"
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
        read_url,
        "",
        "public address of the pages, for links in messages and those that are printed",
    )
    print_links: str = _setting(
        read_print_links,
        "terminal",
        "where serve prints links that sign in: terminal, always, never",
    )
    https: bool = _setting(
        read_flag, False, "true behind TLS: secure cookies, HSTS and redirects to https"
    )
    hsts_seconds: int = _setting(
        read_hsts_seconds, 3600, "with HTTPS: how long browsers remember to use https alone; 0: not"
    )
    hsts_subdomains: bool = _setting(
        read_flag, False, "with HTTPS: true: browsers use https alone for all subdomains too"
    )
    hsts_preload: bool = _setting(
        read_flag, False, "with HTTPS: true: browsers may list this host before its first visit"
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
    tokens += [config.cluster_secrets.token] if config.cluster_secrets else []
    return [config.secret_key, config.metrics_token, *tokens, *passwords_in(config.database_url)]


def secrets_place(config: Config) -> SecretsPlace | None:
    """Where Secrets name clusters; None: nowhere. Raises ConfigError."""
    source, namespace = config.cluster_secrets, config.cluster_secrets_namespace
    if source is None:
        return None
    if not namespace and source.kind is SourceKind.IN_CLUSTER and OWN_NAMESPACE.exists():
        namespace = OWN_NAMESPACE.read_text().strip()
    if not namespace:
        raise ConfigError(
            "LEASEBOARD_CLUSTER_SECRETS needs LEASEBOARD_CLUSTER_SECRETS_NAMESPACE outside of a "
            "pod: write the namespace of the Secrets."
        )
    return SecretsPlace(source, namespace)


def check_names(config: Config, clusters: tuple[ClusterSpec, ...]) -> None:
    """Raise ConfigError for a name that no cluster has: it would leave its cluster writable, or
    without its label.
    """
    watched = [spec.name for spec in clusters]
    labelled = tuple(one.cluster for one in config.cluster_labels)
    for setting, names, also in (
        ("READ_ONLY", config.read_only, "true, or "),
        ("CLUSTER_LABELS", labelled, ""),
    ):
        unknown = [name for name in names if name not in (EVERY_CLUSTER, *watched)]
        if unknown:
            raise ConfigError(
                f"{PREFIX}{setting} names {unknown[0]!r}, which is not watched: write {also}"
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


VERSION = "0.1.0"
VERSION_HEADER = "Leaseboard-Version"  # of `/healthz`
