"""SOURCE -> client: where a cluster is, and how we prove who we are."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import yaml
from kubernetes.aio.client import Configuration
from kubernetes.aio.config import ConfigException, load_incluster_config
from kubernetes.aio.config.kube_config import KubeConfigLoader, KubeConfigMerger

from leases.kube.client import LeaseClient
from leases.kube.session import Configure, ConfigureError, Limits, Session
from leases.kube.source import FORMS, Source, SourceKind


async def connect(
    source: Source, *, kubeconfig: Path | None, limits: Limits | None = None
) -> LeaseClient:
    """A client for this cluster; nothing is sent yet.

    `kubeconfig` is the embedded API's own for `embedded`; for a context None means the default
    place (KUBECONFIG, else ~/.kube/config). Raises ValueError for what only a person can put
    right: no such file, no such context, not in a cluster.
    """
    if source.kind is SourceKind.URL:
        configure, host = _from_url(source.value, source.token), source.value
    elif source.kind is SourceKind.IN_CLUSTER:
        configure, host = _in_cluster()
    else:
        configure, host = _from_kubeconfig(kubeconfig or _default_kubeconfig(), source.value)
    return LeaseClient(Session(configure, host=host, limits=limits))


def _from_url(url: str, token: str) -> Configure:
    async def configure() -> Configuration:
        configuration = Configuration(host=url)
        if token:
            configuration.api_key["BearerToken"] = f"Bearer {token}"
        return configuration

    return configure


def _in_cluster() -> tuple[Configure, str]:
    def load() -> Configuration:
        configuration = Configuration()
        load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
        return configuration

    async def configure() -> Configuration:
        try:
            return load()
        except (ConfigException, OSError) as error:
            raise ConfigureError(f"Cannot read the service account of this pod: {error}") from error

    try:
        return configure, str(load().host)
    except (ConfigException, OSError) as error:
        raise ValueError(
            f"in-cluster works only inside a pod with a service account ({error}): "
            f"use another source, {FORMS}."
        ) from error


def _default_kubeconfig() -> Path:
    return Path(os.environ.get("KUBECONFIG") or Path.home() / ".kube" / "config")


def _from_kubeconfig(path: Path, context: str) -> tuple[Configure, str]:
    """An empty context is the current one. The file is read again whenever credentials fail."""

    async def configure() -> Configuration:
        try:
            config, wanted = _context(path, context)
            loader = KubeConfigLoader(config, active_context=wanted, config_base_path=None)  # type: ignore[no-untyped-call]
            configuration = Configuration()
            await loader.load_and_set(configuration)  # type: ignore[no-untyped-call]
        except (ValueError, OSError, ConfigException, TypeError, KeyError) as error:
            raise ConfigureError(f"Cannot use {path}: {_line(error)}.") from error
        # A token read from a file may end in a newline, which no header can carry.
        configuration.api_key = {k: v.strip() for k, v in configuration.api_key.items()}
        return configuration

    config, wanted = _context(path, context)
    return configure, _server(config, wanted, path)


def _context(path: Path, context: str) -> tuple[Any, str]:
    """The merged kubeconfig and the name of the context in it. Raises ValueError."""
    config = _merged(path)
    names = [entry["name"] for entry in config.value["contexts"] if "name" in entry]
    wanted = context or config.value.get("current-context") or ""
    if wanted not in names:
        known = ", ".join(sorted(names)) or "none"
        raise ValueError(f"There is no context {wanted!r} in {path}; those there are: {known}.")
    return config, wanted


def _merged(path: Path) -> Any:
    files = [Path(part).expanduser() for part in str(path).split(os.pathsep) if part]
    if not any(file.is_file() for file in files):
        raise ValueError(f"There is no kubeconfig at {path}. Set LEASEBOARD_KUBECONFIG.")
    try:
        return KubeConfigMerger(str(path)).config  # type: ignore[no-untyped-call]
    except (yaml.YAMLError, OSError, AttributeError, TypeError, KeyError) as error:
        raise ValueError(f"{path} is no kubeconfig that can be read: {_line(error)}.") from error


def _server(config: Any, context: str, path: Path) -> str:
    """The address of the context's cluster. Raises ValueError."""
    try:
        cluster = config["contexts"].get_with_name(context)["context"]["cluster"]
        server = config["clusters"].get_with_name(cluster)["cluster"]["server"]
    except ConfigException as error:
        raise ValueError(f"Context {context!r} in {path} is incomplete: {_line(error)}.") from error
    return str(server).rstrip("/")


def _line(error: BaseException) -> str:
    return " ".join(str(error).split()).rstrip(".")
