"""Whether a cluster would allow a write of Leases, and what it would refuse."""

import asyncio
from collections.abc import Mapping
from datetime import datetime, timedelta
from urllib.parse import urlencode

import msgspec
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

from dashboard import clock
from dashboard.access.guards import ClusterRequest, may_edit
from dashboard.parts.names import cluster_path
from dashboard.watched_cluster import WatchedCluster
from leases.kube.lease_client import may
from leases.wire.status import ApiError

KEPT = timedelta(minutes=1)
WITHIN = 3.0  # seconds
MAX_KEPT = 10_000  # answers of one cluster
VERBS = ("create", "patch", "update", "delete")

User = AbstractBaseUser | AnonymousUser


class WriteAccess(msgspec.Struct, frozen=True, kw_only=True):
    """`allowed` None: not known. `sentence` is for the page; empty if allowed.

    `partly`: refused for all namespaces together, which leaves single ones open.
    """

    allowed: bool | None
    sentence: str = ""
    read_only: bool = False
    partly: bool = False
    at: datetime | None = None  # when the cluster answered


ALLOWED = WriteAccess(allowed=True)
READ_ONLY = WriteAccess(
    allowed=False,
    sentence="Leaseboard only reads this cluster (LEASEBOARD_READ_ONLY).",
    read_only=True,
)


async def may_write(cluster: WatchedCluster, user: User, namespace: str, verb: str) -> WriteAccess:
    """Ask the cluster, unless it answered less than a minute ago."""
    known = known_access(cluster, user, namespace, verb)
    if known is not None:
        return known
    try:
        allowed = await may(cluster.writer_for(user), verb, namespace, within=WITHIN)
    except ApiError as error:
        text = f"The cluster did not say whether it allows this: {error}"
        return WriteAccess(allowed=None, sentence=text)
    if len(cluster.verdicts) >= MAX_KEPT:
        cluster.verdicts.clear()
    at = clock.now()
    cluster.verdicts[cluster.acting_user(user), namespace, verb] = (at, allowed)
    return _access(cluster, user, namespace, verb, allowed=allowed, at=at)


async def may_write_each(
    cluster: WatchedCluster, user: User, namespace: str, verbs: tuple[str, ...] = VERBS
) -> dict[str, WriteAccess]:
    """The same for several verbs, side by side."""
    answers = (may_write(cluster, user, namespace, verb) for verb in verbs)
    return dict(zip(verbs, await asyncio.gather(*answers), strict=True))


def known_access(
    cluster: WatchedCluster, user: User, namespace: str, verb: str
) -> WriteAccess | None:
    """The answer without asking: None if the cluster was not asked in the last minute."""
    if cluster.read_only:
        return READ_ONLY
    kept = cluster.verdicts.get((cluster.acting_user(user), namespace, verb))
    if kept is None or not timedelta(0) <= clock.now() - kept[0] < KEPT:
        return None
    return _access(cluster, user, namespace, verb, allowed=kept[1], at=kept[0])


def _access(
    cluster: WatchedCluster, user: User, namespace: str, verb: str, *, allowed: bool, at: datetime
) -> WriteAccess:
    if allowed:
        return ALLOWED
    who = cluster.acting_user(user) or "Leaseboard"
    if not namespace:
        text = f"{who} may not {verb} leases in every namespace of this cluster."
        return WriteAccess(allowed=None, sentence=text, partly=True, at=at)
    text = f"The cluster would refuse this: {who} may not {verb} leases in {namespace}."
    return WriteAccess(allowed=False, sentence=text, at=at)


ON_LEASE, ON_LIST = ("patch", "delete"), ("create", "delete")  # the verbs of each page's buttons


class WriteRights(msgspec.Struct, frozen=True):
    """`refused` are verbs with their reasons; `ask_url` gives the rest, "" if all is known."""

    refused: tuple[tuple[str, WriteAccess], ...]
    ask_url: str = ""


def known_rights(
    request: ClusterRequest, namespace: str, verbs: tuple[str, ...]
) -> WriteRights | None:
    """The answers of the last minute, without asking; None for those who may not edit."""
    if not may_edit(request.user):
        return None
    known = {verb: known_access(request.cluster, request.user, namespace, verb) for verb in verbs}
    found = {verb: access for verb, access in known.items() if access is not None}
    if len(found) == len(verbs):
        return rights_of(found)
    query = urlencode({"namespace": namespace, "verbs": ",".join(verbs)})
    return WriteRights((), f"{cluster_path('write_rights', request.cluster.name)}?{query}")


def rights_of(answers: Mapping[str, WriteAccess]) -> WriteRights:
    """Keep what is refused, each reason once."""
    refused: dict[str, tuple[str, WriteAccess]] = {}
    for verb, access in answers.items():
        if access.allowed is False or access.partly:
            refused.setdefault(access.sentence, (verb, access))
    return WriteRights(tuple(refused.values()))
