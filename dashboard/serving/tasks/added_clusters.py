"""Follow the clusters that admins add on the page: watch, change, pause and leave them.

Each replica reads the table: at once when its own page changed it, else every few seconds.
"""

import asyncio
import logging
import shutil
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import msgspec
from django.db import DatabaseError

from dashboard.access.kept_secrets import KUBECONFIGS, CannotUnseal, unseal_text
from dashboard.config import ClusterSpec
from dashboard.log_lines import forget, hide
from dashboard.serving.tasks.cluster_watch import Pause
from leases.history.retention import forget_cluster
from leases.kube.cluster_source import ClusterSource, Kubeconfig, SourceKind
from leases.kube.given_kubeconfig import FOLDER, Config, credentials_in
from leases.models import AddedCluster

logger = logging.getLogger(__name__)

LOOK_SECONDS = 5.0  # until a replica knows what was done at another
LEFT_EVERYWHERE = timedelta(seconds=20)  # until every replica has left a cluster
FORGET_SECONDS = 0.5  # of deleting history, between two looks
PAUSE_SECONDS = 0.1
OTHER_KEY = (
    "Its kubeconfig was stored with another secret key. Paste it again, or give all replicas the "
    "same LEASEBOARD_SECRET_KEY."
)
TAKEN = "The settings or a Secret name a cluster of this name, too. Remove one of the two."

InThread = Callable[[Callable[[], Any]], Awaitable[Any]]


class ClusterHost(Protocol):
    """What watches clusters: the runtime."""

    @property
    def clusters(self) -> Collection[str]: ...
    async def add_cluster(self, spec: ClusterSpec, paused: Pause | None = None) -> None: ...
    async def change_cluster(self, name: str) -> None: ...
    def label_cluster(self, name: str, labels: Mapping[str, str]) -> None: ...
    async def pause_cluster(self, name: str, paused: Pause) -> None: ...
    async def resume_cluster(self, name: str) -> None: ...
    async def leave_cluster(self, name: str) -> None: ...


class _Followed(msgspec.Struct):
    """A cluster that is watched or paused, and which state of its row that is."""

    held: Kubeconfig
    stands: tuple[int, int]
    labels: Mapping[str, str]
    paused: bool


class AddedClusters:
    """`run` may be called again after it died. Any thread may read `says` and `wrong`."""

    def __init__(
        self, host: ClusterHost, *, data: Path, in_thread: InThread, now: Callable[[], datetime]
    ) -> None:
        self._host, self._in_thread, self._now = host, in_thread, now
        self._folder = data / FOLDER
        self._of_settings = frozenset(host.clusters)
        self._followed: dict[str, _Followed] = {}
        self._wake = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self.wrong: Mapping[str, str] = {}

    def __contains__(self, name: object) -> bool:
        """Whether the settings or an admin named a cluster so."""
        return name in self._of_settings or name in self._followed

    @property
    def says(self) -> str | None:
        """What is wrong, for a person, in sentences; None: nothing."""
        told = (f"The cluster {name} is not watched. {why}" for name, why in self.wrong.items())
        return " ".join(told) or None

    def wake(self) -> None:
        """The table was changed. Any thread may call this."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._wake.set)

    async def run(self) -> None:
        """Follow the table until cancelled."""
        self._loop = asyncio.get_running_loop()
        shutil.rmtree(self._folder, ignore_errors=True)  # what a killed process left
        while True:
            self._wake.clear()
            pause = LOOK_SECONDS
            try:
                rows = await self._in_thread(_read_rows)
                await self._follow([row for row in rows if row.removed_at is None])
                if await self._forget(row for row in rows if row.removed_at is not None):
                    pause = PAUSE_SECONDS
            except DatabaseError as error:
                logger.warning("The clusters that admins added cannot be read just now: %s", error)
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._wake.wait()

    async def _follow(self, rows: Iterable[AddedCluster]) -> None:
        wanted = {row.name: row for row in rows}
        for name in self._followed.keys() - wanted.keys():
            forget(*credentials_in(self._followed.pop(name).held.config))
            await self._host.leave_cluster(name)
            logger.info("The cluster %s is watched no longer: an admin removed it", name)
        wrong: dict[str, str] = {}
        for name, row in wanted.items():
            known = self._followed.get(name)
            if known is None and name in self._host.clusters:
                wrong[name] = TAKEN
                continue
            try:
                await (self._begin(row) if known is None else self._adjust(row, known))
            except CannotUnseal:
                wrong[name] = OTHER_KEY
        for name in wrong.keys() - self.wrong.keys():
            logger.warning("The cluster %s is not watched. %s", name, wrong[name])
        self.wrong = wrong

    async def _begin(self, row: AddedCluster) -> None:
        """Raises CannotUnseal."""
        config = await self._in_thread(partial(_read_config, row.pk))
        hide(*credentials_in(config))
        held = Kubeconfig(config, self._folder)
        spec = ClusterSpec(row.name, ClusterSource(SourceKind.ADDED, row.server, held=held))
        await self._host.add_cluster(spec, _pause_of(row))
        self._host.label_cluster(row.name, row.labels)
        paused = row.paused_at is not None
        self._followed[row.name] = _Followed(held, _stands(row), row.labels, paused)
        logger.info("The cluster %s is followed: an admin added it", row.name)

    async def _adjust(self, row: AddedCluster, known: _Followed) -> None:
        """Raises CannotUnseal."""
        if row.labels != known.labels:
            known.labels = row.labels
            self._host.label_cluster(row.name, row.labels)
        if (paused := _pause_of(row)) is not None and not known.paused:
            await self._host.pause_cluster(row.name, paused)
            logger.info("The cluster %s is paused", row.name)
        if _stands(row) != known.stands:
            config = await self._in_thread(partial(_read_config, row.pk))
            before, after = credentials_in(known.held.config), credentials_in(config)
            hide(*after)
            forget(*set(before) - set(after))
            known.held.config, known.stands = config, _stands(row)
            await self._host.change_cluster(row.name)
            logger.info("The cluster %s has a new address or new credentials", row.name)
        if paused is None and known.paused:
            await self._host.resume_cluster(row.name)
            logger.info("The cluster %s is watched again", row.name)
        known.paused = paused is not None

    async def _forget(self, rows: Iterable[AddedCluster]) -> bool:
        """Delete history of removed clusters, for a moment. Returns whether there may be more."""
        end = time.monotonic() + FORGET_SECONDS
        for row in rows:
            if row.removed_at is None or self._now() - row.removed_at < LEFT_EVERYWHERE:
                continue
            while await self._in_thread(partial(forget_cluster, row.name)):
                if time.monotonic() > end:
                    return True
            await self._in_thread(row.delete)
            logger.info("The history of the cluster %s is deleted", row.name)
        return False


def _read_rows() -> list[AddedCluster]:
    return list(AddedCluster.objects.defer("sealed").order_by("name"))


def _read_config(number: int) -> Config:
    """Raises CannotUnseal, and DatabaseError if the row is gone."""
    sealed = AddedCluster.objects.values_list("sealed", flat=True).filter(pk=number).first()
    if sealed is None:
        raise DatabaseError("its row is gone")
    try:
        config: Config = msgspec.json.decode(unseal_text(sealed, KUBECONFIGS))
    except msgspec.MsgspecError as error:
        raise CannotUnseal("It holds no kubeconfig.") from error
    return config


def _stands(row: AddedCluster) -> tuple[int, int]:
    return row.pk, row.revision


def _pause_of(row: AddedCluster) -> Pause | None:
    if row.paused_at is None:
        return None
    return Pause(
        row.paused_at, f"{row.paused_by} paused it. Admins resume it under Manage clusters."
    )
