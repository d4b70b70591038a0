"""Make a client from a SOURCE: the cluster's address and our credentials."""

from pathlib import Path
from typing import Any

from kubernetes.aio.client import Configuration
from kubernetes.aio.config import ConfigException, load_incluster_config
from kubernetes.aio.config.kube_config import ConfigNode, KubeConfigLoader

from leases.kube import cluster_source
from leases.kube.http_session import Configure, ConfigureError, Session, Timeouts
from leases.kube.lease_client import LeaseClient


async def connect(
    source: cluster_source.ClusterSource,
    *,
    kubeconfig: Path | cluster_source.Files | None,
    limits: Timeouts | None = None,
) -> LeaseClient:
    """Make a client for this cluster, without sending anything.

    `kubeconfig`: for `embedded` its own file; for a context one file, or several to merge; None:
    the default place (KUBECONFIG, else ~/.kube/config). Raises ValueError for what only a person
    can fix: no such file, no such context, not in a cluster.
    """
    if source.kind is cluster_source.SourceKind.URL:
        configure, host = _from_url(source.value, source.token), source.value
    elif source.kind is cluster_source.SourceKind.IN_CLUSTER:
        configure, host = await _in_cluster()
    else:
        files = (
            (kubeconfig,)
            if isinstance(kubeconfig, Path)
            else kubeconfig or cluster_source.default_files()
        )
        configure, host = _from_kubeconfig(files, source.value)
    return LeaseClient(Session(configure, host=host, limits=limits))


def _from_url(url: str, token: str) -> Configure:
    async def configure() -> Configuration:
        configuration = Configuration(host=url)
        if token:
            configuration.api_key["BearerToken"] = f"Bearer {token}"
        return configuration

    return configure


async def _in_cluster() -> tuple[Configure, str]:
    async def configure() -> Configuration:
        configuration = Configuration()
        try:
            load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
        except (ConfigException, OSError) as error:
            raise ConfigureError(f"Cannot read the service account of this pod: {error}") from error
        return configuration

    try:
        return configure, str((await configure()).host)
    except ConfigureError as error:
        raise ValueError(
            f"in-cluster works only inside a pod with a service account ({error.__cause__}): "
            f"use another source, {cluster_source.FORMS}."
        ) from error


def _from_kubeconfig(files: cluster_source.Files, context: str) -> tuple[Configure, str]:
    """Read the files, now and whenever credentials fail. An empty context is the current one."""

    async def configure() -> Configuration:
        try:
            config, wanted = _context(files, context)
            loader = KubeConfigLoader(config, active_context=wanted, config_base_path=None)  # type: ignore[no-untyped-call]
            configuration = Configuration()
            await loader.load_and_set(configuration)  # type: ignore[no-untyped-call]
        except (ValueError, OSError, ConfigException, TypeError, KeyError) as error:
            raise ConfigureError(
                f"Cannot use {cluster_source.shown(files)}: {_line(error)}."
            ) from error
        # A token from a file may end in a newline, which a header cannot carry.
        configuration.api_key = {k: v.strip() for k, v in configuration.api_key.items()}
        return configuration

    config, wanted = _context(files, context)
    return configure, _server(config, wanted, files)


def _context(files: cluster_source.Files, context: str) -> tuple[Any, str]:
    """Return the merged kubeconfig and the context's name. Raises ValueError."""
    config = cluster_source.merged(files)
    names = [entry["name"] for entry in config["contexts"]]
    wanted = context or config["current-context"]
    if wanted not in names:
        known = ", ".join(sorted(names)) or "none"
        raise ValueError(
            f"There is no context {wanted!r} in {cluster_source.shown(files)}; "
            f"those there are: {known}."
        )
    return ConfigNode("kubeconfig", config), wanted  # type: ignore[no-untyped-call]


def _server(config: Any, context: str, files: cluster_source.Files) -> str:
    """Return the address of the context's cluster. Raises ValueError."""
    try:
        cluster = config["contexts"].get_with_name(context)["context"]["cluster"]
        server = config["clusters"].get_with_name(cluster)["cluster"]["server"]
    except ConfigException as error:
        raise ValueError(
            f"Context {context!r} in {cluster_source.shown(files)} is incomplete: {_line(error)}."
        ) from error
    return str(server).rstrip("/")


def _line(error: BaseException) -> str:
    return " ".join(str(error).split()).rstrip(".")
