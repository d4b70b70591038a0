"""Clusters that Secrets of one namespace name: read the forms of Secrets, list and watch them.

Three forms, found by their labels:

- ours: label `leaseboard-cluster: NAME`, data `kubeconfig` or `value`;
- Argo CD: label `argocd.argoproj.io/secret-type: cluster`, data `name`, `server`, `config`.
  Source: argo-cd.readthedocs.io, operator manual, "Declarative Setup", "Clusters";
- Cluster API: label `cluster.x-k8s.io/cluster-name: CLUSTER`, name `CLUSTER-kubeconfig`, type
  `cluster.x-k8s.io/secret`, data `value`. Source: sigs.k8s.io/cluster-api/util/secret.

Our label names the cluster in any form. No sentence repeats what a Secret holds. Whoever may write
the Secret must not run a program here, or read a file of ours: such a kubeconfig is refused.
"""

import asyncio
import base64
import binascii
from collections.abc import AsyncIterator, Callable, Container, Mapping
from contextlib import aclosing
from typing import Any

import msgspec

from leases.kube.given_kubeconfig import NAME, RUNS, Config, checked, credentials_in, read_given
from leases.kube.lease_client import LeaseClient, segment
from leases.wire.json_decoding import Undecodable, decoder
from leases.wire.status import Gone, Unreachable, error_of, read_status

LABEL = "leaseboard-cluster"
ARGO_CD = "argocd.argoproj.io/secret-type"
CLUSTER_API = "cluster.x-k8s.io/cluster-name"
# By label selector and field selector; a Secret may be found by two.
SELECTORS = (
    (LABEL, ""),
    (f"{ARGO_CD}=cluster", ""),
    (CLUSTER_API, "type=cluster.x-k8s.io/secret"),
)
IN_CLUSTER_SERVER = "https://kubernetes.default.svc"  # what Argo CD calls its own cluster
LISTED = 500  # Secrets of one form
WATCH_SECONDS = 240
MAX_BODY = 32 * 1024 * 1024

INTO = "the Secret"


class SecretMetadata(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    resource_version: str = ""
    labels: Mapping[str, str] | None = None


class Secret(msgspec.Struct, frozen=True):
    """Its repr omits the data."""

    metadata: SecretMetadata
    data: Mapping[str, str] | None = None  # in base64

    def __repr__(self) -> str:
        return f"Secret({self.metadata.name!r})"

    def read(self, key: str) -> str:
        """Raises ValueError."""
        try:
            return base64.b64decode((self.data or {})[key], validate=True).decode()
        except KeyError:
            raise ValueError(f"it has no {key} in its data") from None
        except (binascii.Error, UnicodeDecodeError):
            raise ValueError(f"its {key} is no text in base64") from None


class SecretCluster(msgspec.Struct, frozen=True):
    """A cluster as a Secret names it. Its repr omits the credentials."""

    name: str
    secret: str
    config: Config

    def __repr__(self) -> str:
        return f"SecretCluster({self.name!r}, {self.secret!r})"

    def credentials(self) -> list[str]:
        """What no log line may hold."""
        return credentials_in(self.config)


def names_a_cluster(secret: Secret) -> bool:
    """Cluster API labels also the Secrets of certificate authorities, which are none of ours."""
    labels = secret.metadata.labels or {}
    cluster = labels.get(CLUSTER_API)
    others = LABEL in labels or ARGO_CD in labels
    return others or secret.metadata.name == f"{cluster}-kubeconfig"


def judge(
    secrets: Mapping[str, Secret], taken: Container[str]
) -> tuple[dict[str, SecretCluster], tuple[str, ...]]:
    """Return the clusters that can be watched, by name, and a sentence for each other Secret.

    `taken`: names of other clusters.
    """
    wanted: dict[str, SecretCluster] = {}
    wrong = []
    for name, secret in sorted(secrets.items()):
        if not names_a_cluster(secret):
            continue
        try:
            cluster = read_cluster(secret)
            if cluster.name in taken:
                raise ValueError(
                    f"the settings or an admin of Leaseboard named another cluster {cluster.name}"
                )
            if cluster.name in wanted:
                other = wanted[cluster.name].secret
                raise ValueError(f"the Secret {other} names the cluster {cluster.name} too")
        except ValueError as error:
            wrong.append(f"The Secret {name} names no cluster that can be watched: {error}.")
        else:
            wanted[cluster.name] = cluster
    return wanted, tuple(wrong)


def read_cluster(secret: Secret) -> SecretCluster:
    """Raises ValueError, which says what is wrong, in the middle of a sentence."""
    labels = secret.metadata.labels or {}
    if labels.get(ARGO_CD) == "cluster":
        name, config = secret.read("name"), _from_argo_cd(secret)
    else:
        name = labels.get(CLUSTER_API) or secret.metadata.name
        key = "kubeconfig" if "kubeconfig" in (secret.data or {}) else "value"
        config = read_given(secret.read(key), into=INTO)
    name = labels.get(LABEL) or name
    if not NAME.fullmatch(name):
        raise ValueError(
            "its name for the cluster is not 1 to 32 of a-z, 0-9 and -: set its label "
            f"{LABEL} to one that is"
        )
    return SecretCluster(name, secret.metadata.name, config)


class _Tls(msgspec.Struct, frozen=True, rename="camel"):
    insecure: bool = False
    server_name: str = ""
    ca_data: str = ""
    cert_data: str = ""
    key_data: str = ""


class _ArgoCd(msgspec.Struct, frozen=True, rename="camel"):
    username: str = ""
    password: str = ""
    bearer_token: str = ""
    tls_client_config: _Tls = _Tls()
    proxy_url: str = ""
    aws_auth_config: Any = None
    exec_provider_config: Any = None


_argo_cd = decoder(_ArgoCd)


def _from_argo_cd(secret: Secret) -> Config:
    server = secret.read("server").strip().rstrip("/")
    text = secret.read("config") if "config" in (secret.data or {}) else "{}"
    try:
        found: _ArgoCd = _argo_cd(text.encode())
    except Undecodable:
        raise ValueError("its config is not the JSON that Argo CD reads") from None
    if found.aws_auth_config or found.exec_provider_config:
        raise ValueError(f"its config names a program to run. {RUNS}")
    tls = found.tls_client_config
    if server == IN_CLUSTER_SERVER and not (found.bearer_token or tls.cert_data or found.username):
        return {}
    cluster = {
        "server": server,
        "certificate-authority-data": tls.ca_data,
        "insecure-skip-tls-verify": tls.insecure,
        "tls-server-name": tls.server_name,
        "proxy-url": found.proxy_url,
    }
    user = {
        "token": found.bearer_token,
        "username": found.username,
        "password": found.password,
        "client-certificate-data": tls.cert_data,
        "client-key-data": tls.key_data,
    }
    return checked(cluster, user, into=INTO)


class _ListMeta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""


class _Secrets(msgspec.Struct, frozen=True):
    metadata: _ListMeta
    items: tuple[Secret, ...] | None = None


class _Event(msgspec.Struct, frozen=True):
    type: str
    object: msgspec.Raw


_event = decoder(_Event)
_secret = decoder(Secret)
Found = dict[str, Secret]  # by name


Selector = tuple[str, str]


async def list_secrets(
    client: LeaseClient, namespace: str, selector: Selector
) -> tuple[Found, str]:
    """Return the Secrets of one form, and the version of the list. Raises ApiError."""
    listed = await client.read(
        _path(namespace), _Secrets, "list of Secrets",
        query=[*_query(selector), ("limit", str(LISTED))],
        within=client.limits.page, max_bytes=MAX_BODY,
    )  # fmt: skip
    found = {one.metadata.name: one for one in listed.items or ()}
    return found, listed.metadata.resource_version


def _path(namespace: str) -> str:
    return f"/api/v1/namespaces/{segment(namespace)}/secrets"


def _query(selector: Selector) -> list[tuple[str, str]]:
    labels, fields = selector
    return [("labelSelector", labels), *([("fieldSelector", fields)] if fields else [])]


async def follow(
    client: LeaseClient, namespace: str, selector: Selector, tell: Callable[[Found], None]
) -> None:
    """List, and watch until the server ends the watch; tell what is there now. Raises ApiError."""
    found, version = await list_secrets(client, namespace, selector)
    tell(dict(found))
    query = [
        *_query(selector),
        ("resourceVersion", version),
        ("allowWatchBookmarks", "true"),
        ("timeoutSeconds", str(WATCH_SECONDS)),
    ]
    lines = client.watch_lines(_path(namespace), query=query, lasts=WATCH_SECONDS)
    async with aclosing(lines):
        await _read_events(lines, found, tell)


async def _read_events(
    lines: AsyncIterator[bytes], found: Found, tell: Callable[[Found], None]
) -> None:
    async for line in lines:
        try:
            event: _Event = _event(line)
            if event.type == "BOOKMARK":
                continue
            if event.type == "ERROR":
                raise error_of(read_status(Gone.code, bytes(event.object)))
            secret: Secret = _secret(bytes(event.object))
        except Undecodable as error:
            # What a decoder says may hold a part of the Secret.
            raise Unreachable("The cluster sent an event that is about no Secret.") from error
        found.pop(secret.metadata.name, None)
        if event.type != "DELETED":
            found[secret.metadata.name] = secret
        tell(dict(found))
        await asyncio.sleep(0)
