"""Make a client from a SOURCE: the cluster's address and our credentials."""

import re
from pathlib import Path
from typing import Any

from kubernetes.aio.client import Configuration
from kubernetes.aio.config import ConfigException, load_incluster_config
from kubernetes.aio.config.exec_provider import ExecProvider
from kubernetes.aio.config.kube_config import ConfigNode, FileOrData, KubeConfigLoader

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
    elif source.held is not None:
        is_secret = source.kind is cluster_source.SourceKind.SECRET
        whose = f"of the Secret {source.value}" if is_secret else "that an admin gave"
        configure, host = await _from_held(whose, source.held)
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


async def _from_held(whose: str, held: cluster_source.Kubeconfig) -> tuple[Configure, str]:
    """Read what is held now, and whenever credentials fail. An empty one is that of this pod."""

    async def configure() -> Configuration:
        if not held.config:
            return await (await _in_cluster())[0]()
        configuration = Configuration()
        try:
            held.folder.mkdir(mode=0o700, exist_ok=True)
            loader = KubeConfigLoader(held.config, temp_file_path=str(held.folder))  # type: ignore[no-untyped-call]
            await loader.load_and_set(configuration)  # type: ignore[no-untyped-call]
        except (ValueError, OSError, ConfigException, TypeError, KeyError) as error:
            # What the library says may hold a part of it.
            raise ConfigureError(
                f"Cannot use the kubeconfig {whose} ({type(error).__name__})."
            ) from None
        return configuration

    if not held.config:
        return configure, (await _in_cluster())[1]
    return configure, str(held.config["clusters"][0]["cluster"]["server"]).rstrip("/")


MAX_SAID = 200  # characters of what a plugin wrote to stderr
_BYTES = re.compile(r"b(['\"])(.*)\1$")  # stderr, as the library puts it into its message


class _Loader(KubeConfigLoader):
    """The library logs why an exec plugin failed and goes on as `system:anonymous`."""

    async def load_from_exec_plugin(self) -> bool:
        """Raises ConfigException, which names the plugin and says what to do."""
        plugin: Any = self._user
        plugin = plugin["exec"]
        name = plugin.safe_get("command")
        try:
            given = await ExecProvider(plugin).run()  # type: ignore[no-untyped-call]
        except (FileNotFoundError, PermissionError) as error:
            raise ConfigException(
                f"its exec plugin {name!r} is not installed where Leaseboard runs. Install it "
                'there as docs/operations.md says under "Kubeconfigs of clouds", or use a context '
                "with the token of a service account"
            ) from error
        except (ConfigException, OSError) as error:
            said = _BYTES.sub(r"\2", _line(error)).replace("\\n", " ")[:MAX_SAID]
            raise ConfigException(
                f"its exec plugin {name!r} failed ({said}). Run it as the user of Leaseboard, and "
                "give it what it asks for"
            ) from error
        if "token" in given:
            self.token = f"Bearer {given['token']}"
        elif {"clientCertificateData", "clientKeyData"} <= given.keys():
            self.cert_file = self._written(given, "clientCertificateData")
            self.key_file = self._written(given, "clientKeyData")
        else:
            raise ConfigException(
                f"its exec plugin {name!r} gave neither a token nor a certificate with its key. "
                "Update the plugin"
            )
        return True

    def _written(self, given: Any, name: str) -> str:
        """The path of a file with what the plugin gave."""
        data = FileOrData(  # type: ignore[no-untyped-call]
            given, None, data_key_name=name, base64_file_content=False,
            temp_file_path=self._temp_file_path,
        )  # fmt: skip
        return str(data.as_file())  # type: ignore[no-untyped-call]


def _from_kubeconfig(files: cluster_source.Files, context: str) -> tuple[Configure, str]:
    """Read the files, now and whenever credentials fail. An empty context is the current one."""

    async def configure() -> Configuration:
        try:
            config, wanted = _context(files, context)
            loader = _Loader(config, active_context=wanted, config_base_path=None)  # type: ignore[no-untyped-call]
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
