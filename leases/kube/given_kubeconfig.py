"""A kubeconfig that somebody gives, in a Secret or on a page: judge it, and keep one context of it.

Whoever gives it must not run a program here, or read a file of ours: such a kubeconfig is refused.
No sentence repeats what it holds.
"""

import base64
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import yaml

NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?")  # of a cluster

Config = dict[str, Any]  # a kubeconfig of one context; empty: the cluster that this pod runs in

FOLDER = "added"  # below DATA; holds certificates of added clusters while they are read
RUNS = "Leaseboard runs no program that others name; use the token of a service account"
_PATHS = ("certificate-authority", "client-certificate", "client-key", "tokenFile")
_BASE64 = ("certificate-authority-data", "client-certificate-data", "client-key-data")
_PROGRAMS = ("exec", "auth-provider")
_CREDENTIALS = ("token", "password", "client-key-data", "proxy-url")
_OF_CLUSTER = (
    "server", "certificate-authority-data", "insecure-skip-tls-verify", "tls-server-name",
    "proxy-url",
)  # fmt: skip
_OF_USER = ("token", "username", "password", "client-certificate-data", "client-key-data")


def read_given(text: str, *, into: str, context: str = "") -> Config:
    """Return one context of it, by default its current one. Raises ValueError, in the middle of a
    sentence. `into` is where the content of a file has to be put instead of its path.
    """
    whole = _parsed(text)
    try:
        wanted = context or whole["current-context"]
        chosen = _named(whole, "contexts", "context", wanted)
        cluster = _named(whole, "clusters", "cluster", chosen["cluster"])
        user = _named(whole, "users", "user", chosen["user"]) if chosen.get("user") else {}
        return checked(dict(cluster), dict(user), into=into)
    except (KeyError, TypeError, AttributeError, StopIteration):
        which = "context" if context else "current-context"
        raise ValueError(
            f"it holds no kubeconfig whose {which} names a cluster and a user"
        ) from None


def contexts_in(text: str) -> tuple[str, ...]:
    """The names of its contexts, in their order. Raises ValueError, as `read_given` does."""
    whole = _parsed(text)
    try:
        named = dict.fromkeys(one["name"] for one in whole["contexts"])
    except (KeyError, TypeError):
        named = {}
    names = tuple(name for name in named if isinstance(name, str) and name)
    if not names:
        raise ValueError("it holds no kubeconfig with contexts")
    return names


def _parsed(text: str) -> Mapping[str, Any]:
    try:
        whole = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        line = f" (line {error.problem_mark.line + 1})" if error.problem_mark else ""
        raise ValueError(f"it is not YAML{line}") from None
    except (yaml.YAMLError, ValueError, RecursionError):
        raise ValueError("it is not YAML") from None
    if not isinstance(whole, Mapping):
        raise ValueError("it holds no kubeconfig with clusters, users and contexts")
    return whole


def _named(whole: Any, plural: str, singular: str, name: str) -> Any:
    found = next(one[singular] for one in whole[plural] if one["name"] == name)
    return {} if found is None else found


def checked(cluster: dict[str, Any], user: dict[str, Any], *, into: str) -> Config:
    """A kubeconfig of one context without empty entries. Raises ValueError."""
    both = {**cluster, **user}
    if path := next((key for key in _PATHS if both.get(key)), None):
        raise ValueError(f"its {path} is a file. Put what is in the file into {into}")
    if any(user.get(key) for key in _PROGRAMS):
        raise ValueError(f"it names a program to run. {RUNS}")
    for key in _BASE64:
        try:
            base64.b64decode(both.get(key) or "", validate=True)
        except (ValueError, TypeError):
            raise ValueError(f"its {key} is not base64") from None
    if not all(isinstance(user.get(key) or "", str) for key in ("token", "username", "password")):
        raise ValueError("its token, user name or password is no text")
    if token := user.get("token"):
        user["token"] = token.strip()  # a header cannot carry the newline at its end
    texts = ("server", "tls-server-name", "proxy-url")
    if not all(isinstance(cluster.get(key) or "", str) for key in texts) or not _is_address(
        cluster.get("server") or ""
    ):
        raise ValueError("its server is no address that begins with https:// and has no password")
    cluster["insecure-skip-tls-verify"] = cluster.get("insecure-skip-tls-verify") is True
    kept = (
        {key: one[key] for key in keys if one.get(key)}
        for one, keys in ((cluster, _OF_CLUSTER), (user, _OF_USER))
    )
    bodies = zip(("clusters", "users"), ("cluster", "user"), kept, strict=True)
    entries = {many: [{"name": "it", one: body}] for many, one, body in bodies}
    context = {"name": "it", "context": {"cluster": "it", "user": "it"}}
    return {"current-context": "it", "contexts": [context], **entries}


def _is_address(server: str) -> bool:
    try:
        url = urlsplit(server)
        usable = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:
        return False
    return usable and url.username is None and not url.query


def credentials_in(config: Config) -> list[str]:
    """What no log line may hold."""
    if not config:
        return []
    both = {**config["clusters"][0]["cluster"], **config["users"][0]["user"]}
    return [str(both[key]) for key in _CREDENTIALS if key in both]


def server_of(config: Config) -> str:
    """The address of its cluster."""
    return str(config["clusters"][0]["cluster"]["server"]).rstrip("/")
