"""Follow the clusters that Secrets name: watch them, change their credentials, leave them."""

import asyncio
import logging
import shutil
from collections.abc import Awaitable, Callable, Container
from pathlib import Path

import msgspec

from dashboard.config import ClusterSpec, SecretsPlace
from dashboard.log_lines import forget, hide
from leases.kube import cluster_secrets
from leases.kube.backoff import Backoff
from leases.kube.cluster_secrets import SecretCluster
from leases.kube.cluster_source import ClusterSource, Kubeconfig, SourceKind
from leases.kube.connect import connect
from leases.kube.lease_client import LeaseClient
from leases.wire.status import ApiError, Forbidden, Gone

logger = logging.getLogger(__name__)

GATHER = 0.1  # seconds in which Secrets that come together are read together
FOLDER = "secrets"  # below DATA; holds certificates for the moment in which they are read
RIGHTS = "Grant get, list and watch on secrets there, as deploy/components/cluster-secrets does."


class _Followed(msgspec.Struct):
    """A cluster of a Secret that is watched."""

    cluster: SecretCluster
    held: Kubeconfig


class SecretClusters:
    """`run` may be called again after it died. Any thread may read `says`."""

    def __init__(
        self,
        place: SecretsPlace,
        *,
        kubeconfig: tuple[Path, ...],
        data: Path,
        taken: Container[str],
        add: Callable[[ClusterSpec], Awaitable[None]],
        change: Callable[[str], Awaitable[None]],
        leave: Callable[[str], Awaitable[None]],
    ) -> None:
        """`taken`: names of other clusters. The rest acts on clusters of this process."""
        self._place, self._kubeconfig, self._folder = place, kubeconfig, data / FOLDER
        self._taken, self._add, self._change, self._leave = taken, add, change, leave
        self._found: dict[tuple[str, str], cluster_secrets.Found] = {}  # by selector
        self._followed: dict[str, _Followed] = {}  # by name
        self._moved = asyncio.Event()
        self._unread: dict[tuple[str, str], str] = {}  # why one selector is not read now
        self._wrong: tuple[str, ...] = ()

    @property
    def says(self) -> str | None:
        """What is wrong, for a person, in a sentence each; None: nothing."""
        unread = dict.fromkeys(self._unread.values())
        return " ".join((*unread, *self._wrong)) or None

    async def run(self) -> None:
        """Follow the Secrets until cancelled."""
        shutil.rmtree(self._folder, ignore_errors=True)  # what a killed process left
        client = await connect(self._place.source, kubeconfig=self._kubeconfig)
        try:
            async with asyncio.TaskGroup() as group:
                for selector in cluster_secrets.SELECTORS:
                    group.create_task(self._read(client, selector))
                group.create_task(self._apply())
        finally:
            await client.close()

    async def _read(self, client: LeaseClient, selector: tuple[str, str]) -> None:
        """Keep what is known of one form of Secret; while it cannot be read, all stays."""
        backoff = Backoff()

        def tell(found: cluster_secrets.Found) -> None:
            backoff.reset()
            self._unread.pop(selector, None)
            self._found[selector] = found
            self._moved.set()

        while True:
            try:
                await cluster_secrets.follow(client, self._place.namespace, selector, tell)
            except Gone:
                pass  # the list that follows is as new as can be
            except ApiError as error:
                do = RIGHTS if isinstance(error, Forbidden) else ""
                said = str(error).rstrip(".")
                self._unread[selector] = (
                    f"The Secrets that name clusters cannot be read: {said}. {do}".rstrip()
                )
                logger.warning("%s", self._unread[selector])
                refused = isinstance(error, Forbidden)
                await asyncio.sleep(backoff.delay(refused=refused))
            else:
                await asyncio.sleep(GATHER)

    async def _apply(self) -> None:
        while True:
            await self._moved.wait()
            await asyncio.sleep(GATHER)
            self._moved.clear()
            if len(self._found) < len(cluster_secrets.SELECTORS) and not self._unread:
                continue  # the first lists are on their way
            await self._follow(self._judged())

    def _judged(self) -> dict[str, SecretCluster]:
        """The clusters that can be watched, by name; the rest is a sentence each."""
        secrets = {name: one for found in self._found.values() for name, one in found.items()}
        wanted, wrong = cluster_secrets.judge(secrets, self._taken)
        for sentence in set(wrong) - set(self._wrong):
            logger.warning("%s", sentence)
        self._wrong = wrong
        return wanted

    async def _follow(self, wanted: dict[str, SecretCluster]) -> None:
        for name in self._followed.keys() - wanted.keys():
            forget(*self._followed.pop(name).cluster.credentials())
            await self._leave(name)
            logger.info("The cluster %s is watched no longer: its Secret is gone", name)
        for name, cluster in wanted.items():
            known = self._followed.get(name)
            if known is not None and known.cluster.config == cluster.config:
                continue
            hide(*cluster.credentials())
            if known is None:
                await self._begin(cluster)
                continue
            forget(*set(known.cluster.credentials()) - set(cluster.credentials()))
            known.cluster, known.held.config = cluster, cluster.config
            await self._change(name)
            logger.info("The cluster %s has a new address or new credentials", name)

    async def _begin(self, cluster: SecretCluster) -> None:
        held = Kubeconfig(cluster.config, self._folder)
        source = ClusterSource(SourceKind.SECRET, cluster.secret, held=held)
        await self._add(ClusterSpec(cluster.name, source))
        self._followed[cluster.name] = _Followed(cluster, held)
        logger.info("%s is watched: the Secret %s names it", cluster.name, cluster.secret)
