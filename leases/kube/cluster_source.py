"""Parse SOURCE of the command line, and merge kubeconfig files, without connecting.

`embedded`, `in-cluster`, `context:<kubeconfig context>` or `url:<http(s) base URL>`; a URL may
carry a bearer token: `url:https://TOKEN@HOST`.

Source: k8s.io/client-go/tools/clientcmd/loader.go, `Load` and `ResolveLocalPaths`. The first file
that defines a cluster, user, context or `current-context` wins. Missing files are skipped. Relative
paths start at their file's folder.
"""

import os
import re
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec
import yaml

FORMS = "embedded, in-cluster, context:<kubeconfig context> or url:<http(s) base URL>"
MAX_SHOWN = 100  # characters of a wrong SOURCE that a message repeats
_URL = re.compile(r"(https?://)(?:([^/@\s?#]+)@)?([^/@\s?#]+[^\s?#]*)")


class SourceKind(StrEnum):
    EMBEDDED = "embedded"
    IN_CLUSTER = "in-cluster"
    CONTEXT = "context"
    URL = "url"
    SECRET = "secret"  # noqa: S105 - of Kubernetes; never written by a person
    ADDED = "added"  # on the page of clusters; never written by a person


class Kubeconfig:
    """One that is held in memory, of one context; its owner may replace `config`.

    Its certificates are put into `folder` for the moment in which they are read.
    """

    def __init__(self, config: dict[str, Any], folder: Path) -> None:
        self.config, self.folder = config, folder


class ClusterSource(msgspec.Struct, frozen=True):
    """A parsed SOURCE; `value` is the context or the URL, if any.

    Its text and repr omit the token.
    """

    kind: SourceKind
    value: str = ""
    token: str = ""
    held: Kubeconfig | None = None  # of a Secret, or of a page

    def __str__(self) -> str:
        return f"{self.kind}:{self.value}" if self.value else str(self.kind)

    def __repr__(self) -> str:
        return f"Source({str(self)!r})"


def parse_source(text: str) -> ClusterSource:
    """Parse a SOURCE. Raises ValueError, which lists what is allowed."""
    word, colon, value = text.strip().partition(":")
    if word in (SourceKind.EMBEDDED, SourceKind.IN_CLUSTER) and not colon:
        return ClusterSource(SourceKind(word))
    if word == SourceKind.CONTEXT and value:
        return ClusterSource(SourceKind.CONTEXT, value)
    if word == SourceKind.URL and (url := _URL.fullmatch(value)):
        scheme, given, rest = url.groups()
        token = unquote(given or "")
        if not _is_host(scheme + rest):
            raise ValueError("The URL has an invalid host or port: write url:https://HOST.")
        if not (token.isascii() and token.isprintable() and " " not in token):
            raise ValueError("The text before the @ of the URL is no valid token.")
        return ClusterSource(SourceKind.URL, scheme + rest.rstrip("/"), token)
    raise ValueError(f"{_shown(text)} is no source of a cluster: write {FORMS}.")


def _is_host(url: str) -> bool:
    """Whether the URL has a usable host and port. Python checks the port only when it is read."""
    try:
        parts = urlsplit(url)
        return bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _shown(text: str) -> str:
    """Quote the input, unless it may contain a token."""
    is_safe = not any(sign in text for sign in "@/?") and len(text) <= MAX_SHOWN
    return repr(text) if is_safe else "This"


Files = tuple[Path, ...]
_LISTS = {"clusters": "cluster", "users": "user", "contexts": "context"}
_PATHS = ("certificate-authority", "client-certificate", "client-key", "tokenFile")


def files_of(text: str) -> Files:
    """Return the files that KUBECONFIG names."""
    return tuple(Path(part).expanduser().absolute() for part in text.split(os.pathsep) if part)


def default_files() -> Files:
    """Return the files that kubectl would read."""
    return files_of(os.environ.get("KUBECONFIG", "")) or (Path.home() / ".kube" / "config",)


def shown(files: Files) -> str:
    """Format the files as KUBECONFIG does."""
    return os.pathsep.join(map(str, files))


def merged(files: Files) -> dict[str, Any]:
    """Return one kubeconfig with absolute paths. Raises ValueError."""
    there = [file for file in files if file.exists()]
    if not there:
        raise ValueError(f"There is no kubeconfig at {shown(files)}. Set LEASEBOARD_KUBECONFIG.")
    merged: dict[str, Any] = {"current-context": ""}
    found: dict[str, dict[str, Any]] = {plural: {} for plural in _LISTS}
    for file in there:
        config = _read(file)
        merged["current-context"] = merged["current-context"] or config.get("current-context") or ""
        for plural, singular in _LISTS.items():
            for name, body in _entries(config, plural, singular, file):
                entry = {"name": name, singular: _resolved(body, file.parent)}
                found[plural].setdefault(name, entry)
    return merged | {plural: list(entries.values()) for plural, entries in found.items()}


def _read(file: Path) -> Mapping[str, Any]:
    """Read one file; it may be empty. Messages never quote its content."""
    try:
        config = yaml.safe_load(file.read_bytes())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f" in line {mark.line + 1}" if mark else ""
        raise _unreadable(file, f"{error.problem or error.context}{place}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise _unreadable(file, "it is not YAML") from error
    except OSError as error:
        raise _unreadable(file, (error.strerror or str(error)).lower()) from error
    if config is None:
        return {}
    if not isinstance(config, Mapping):
        raise _unreadable(file, "it must be a mapping with clusters, users and contexts")
    return config


def _entries(
    config: Mapping[str, Any], plural: str, singular: str, file: Path
) -> list[tuple[str, Mapping[str, Any]]]:
    entries = config.get(plural) or []
    if not isinstance(entries, list):
        raise _unreadable(file, f"{plural} must be a list")
    found = []
    for entry in entries:
        name = entry.get("name") if isinstance(entry, Mapping) else None
        body = entry.get(singular) or {} if isinstance(entry, Mapping) else None
        if not isinstance(body, Mapping):
            raise _unreadable(file, f"each of {plural} must have a name and a {singular}")
        if name:
            found.append((str(name), body))
    return found


def _resolved(body: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return a copy with absolute paths."""
    entry = dict(body)
    for key in _PATHS:
        if entry.get(key):
            entry[key] = str(folder / str(entry[key]))
    plugin = entry.get("exec")
    if isinstance(plugin, Mapping) and os.sep in str(plugin.get("command", "")):
        entry["exec"] = {**plugin, "command": str(folder / str(plugin["command"]))}
    return entry


def _unreadable(file: Path, why: str) -> ValueError:
    return ValueError(f"{file} is no kubeconfig that can be read: {why}.")
