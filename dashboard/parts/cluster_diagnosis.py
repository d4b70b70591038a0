"""Examine one cluster: reach, sign-in, clock, rights, watch. And the Secrets that name more."""

import asyncio
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from enum import StrEnum

import msgspec

from dashboard.config import EVERY_CLUSTER, ClusterSpec, Config, secrets_place
from dashboard.log_lines import hide
from leases.kube import cluster_secrets
from leases.kube.cluster_source import ClusterSource, Kubeconfig, SourceKind
from leases.kube.connect import connect
from leases.kube.http_session import Timeouts, advise
from leases.kube.lease_client import GROUP, LeaseClient, ServerVersion, may
from leases.wire.status import ApiError, Forbidden, NotFound, Unauthorized, Unreachable

LITTLE_SKEW, MUCH_SKEW = timedelta(seconds=2), timedelta(seconds=30)  # a Date has whole seconds
LISTEN_SECONDS = 3.0
SLOW_SECONDS = 2.0
WHERE = "Correct the source of the cluster (LEASEBOARD_CLUSTERS) or LEASEBOARD_KUBECONFIG."
READ = ("get", "list", "watch")
EDIT = ("create", "update", "patch", "delete")
EVIDENCE = (("", "pods"), ("", "nodes"), ("", "events"), (GROUP, "leasecandidates"))


class Level(StrEnum):
    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`found` and `do` are sentences; `do` is empty where nothing is to be done."""

    check: str
    level: Level
    found: str
    do: str = ""
    cluster: str = ""

    @property
    def line(self) -> str:
        where = f"cluster {self.cluster}, {self.check}" if self.cluster else self.check
        return f"{self.level:<8} {where}: {self.found} {self.do}".rstrip()


def from_api_error(check: str, cluster: str, host: str, error: ApiError) -> Finding:
    """A problem in the words of the pages: what happened, then what to do."""
    found, _, do = advise(host, error).partition(". ")
    return Finding(
        check=check, level=Level.PROBLEM, found=f"{found.rstrip('.')}.", do=do, cluster=cluster
    )


class _Ended(Exception):
    """The server ended the watch before its first event."""


class _Stop(Exception):
    """The rest cannot be examined; the reason is found already."""


async def examine_cluster(
    spec: ClusterSpec,
    config: Config,
    *,
    seconds: float,
    now: Callable[[], datetime],
    listen: float = LISTEN_SECONDS,
) -> list[Finding]:
    """No answer is waited for longer than `seconds`, and no first event longer than `listen`."""
    kubeconfig = config.kubeconfig
    if spec.source.kind is SourceKind.EMBEDDED:
        kubeconfig = (config.data / "kubeconfig",)
        if not kubeconfig[0].exists():
            found = "The embedded Lease API begins with serve."
            return [Finding(check="reach", cluster=spec.name, level=Level.OK, found=found)]
    limits = Timeouts(connect=seconds, answer=seconds, page=seconds, probe=seconds)
    try:
        client = await connect(spec.source, kubeconfig=kubeconfig, limits=limits)
    except ValueError as error:
        found, _, do = str(error).partition(". ")
        return [
            Finding(
                check="source", cluster=spec.name, level=Level.PROBLEM, do=do or WHERE,
                found=f"{found.rstrip('.')}.",
            )
        ]  # fmt: skip
    writes = not config.impersonate and {EVERY_CLUSTER, spec.name}.isdisjoint(config.read_only)
    examination = _Examination(spec, client, seconds=seconds, writes=writes, now=now, listen=listen)
    try:
        await examination.run()
    except _Stop:
        pass
    finally:
        await client.close()
    return examination.findings


async def examine_secrets(
    config: Config, *, seconds: float, now: Callable[[], datetime]
) -> list[Finding]:
    """The Secrets that name clusters, and each of those clusters."""
    place = secrets_place(config)
    if place is None:
        return []
    limits = Timeouts(connect=seconds, answer=seconds, page=seconds)
    client = await connect(place.source, kubeconfig=config.kubeconfig, limits=limits)
    try:
        lists = [await cluster_secrets.list_secrets(client, place.namespace, selector)
                 for selector in cluster_secrets.SELECTORS]  # fmt: skip
    except ApiError as error:
        return [from_api_error("secrets", "", client.host, error)]
    finally:
        await client.close()
    found = {name: secret for secrets, _ in lists for name, secret in secrets.items()}
    taken = {spec.name for spec in config.clusters}
    wanted, wrong = cluster_secrets.judge(found, taken)
    said = f"Secrets of the namespace {place.namespace} name {len(wanted)} clusters."
    findings = [Finding(check="secrets", level=Level.OK, found=said)]
    do = "Correct the Secret, or take its label away."
    findings += [Finding(check="secrets", level=Level.PROBLEM, found=one, do=do) for one in wrong]
    for cluster in wanted.values():
        hide(*cluster.credentials())
        held = Kubeconfig(cluster.config, config.data / "secrets")
        spec = ClusterSpec(
            cluster.name, ClusterSource(SourceKind.SECRET, cluster.secret, held=held)
        )
        findings += await examine_cluster(spec, config, seconds=seconds, now=now)
    return findings


class _Examination:
    def __init__(
        self,
        spec: ClusterSpec,
        client: LeaseClient,
        *,
        seconds: float,
        writes: bool,
        now: Callable[[], datetime],
        listen: float,
    ) -> None:
        self.findings: list[Finding] = []
        self._spec, self._client, self._seconds = spec, client, seconds
        self._writes, self._now, self._listen = writes, now, listen

    async def run(self) -> None:
        await self._reach()
        await self._rights()
        await self._watch()

    def _add(self, check: str, level: Level, found: str, do: str = "") -> None:
        self.findings.append(
            Finding(check=check, level=level, found=found, do=do, cluster=self._spec.name)
        )

    def _fail(self, check: str, error: ApiError) -> _Stop:
        host = self._client.host
        self.findings.append(from_api_error(check, self._spec.name, host, error))
        return _Stop()

    async def _reach(self) -> None:
        """The version, which nearly every cluster tells everybody, and the clock."""
        head: dict[str, str] = {}
        asked, began = self._now(), time.monotonic()
        try:
            body = await self._client.send("GET", "/version", within=self._seconds, received=head)
            version = msgspec.json.decode(body, type=ServerVersion).git_version
        except Forbidden:
            version = "of a version that it does not tell"
        except Unreachable as error:
            if self._spec.source.kind is SourceKind.EMBEDDED:
                self._add("reach", Level.OK, "The embedded Lease API does not run now.")
                raise _Stop from None
            raise self._fail("reach", error) from None
        except Unauthorized as error:
            raise self._fail("sign-in", error) from None
        except (ApiError, msgspec.MsgspecError) as error:
            self._add(
                "reach", Level.PROBLEM,
                f"{self._client.host} answers, but not as a Kubernetes API server ({error}).",
                "Check the address and the port: it may be that of another program, or of a proxy.",
            )  # fmt: skip
            raise _Stop from None
        took = time.monotonic() - began
        found = f"{self._client.host} answers in {took * 1000:,.0f} ms: Kubernetes {version}."
        self._add("reach", Level.OK, found)
        self._compare_clocks(head.get("Date", ""), asked + timedelta(seconds=took / 2))

    def _compare_clocks(self, text: str, ours: datetime) -> None:
        try:
            theirs = parsedate_to_datetime(text)
            skew = theirs - ours if theirs.tzinfo else None
        except ValueError:
            skew = None
        if skew is None:
            self._add("clock", Level.OK, "The cluster does not tell its time; not compared.")
            return
        level = Level.OK if abs(skew) <= LITTLE_SKEW else Level.WARNING
        if abs(skew) > MUCH_SKEW:
            level = Level.PROBLEM
        which = "ahead of" if skew > timedelta(0) else "behind"
        found = f"The cluster's clock is {abs(skew).total_seconds():,.0f} s {which} ours."
        if level is Level.OK:
            found = "The cluster's clock and ours agree to the second."
        do = "" if level is Level.OK else "Synchronise both with NTP; times of Leases look shifted."
        self._add("clock", level, found, do)

    async def _rights(self) -> None:
        try:
            refused = await self._refused(READ)
            edits = await self._refused(EDIT) if self._writes else []
            lacking = [
                resource
                for group, resource in EVIDENCE
                if not await self._may("list", resource, group)
            ]
        except Unauthorized as error:
            raise self._fail("sign-in", error) from None
        except ApiError as error:
            self._add(
                "rights", Level.WARNING, f"The cluster does not say what we may do ({error}).",
                "Let the account create SelfSubjectAccessReviews; system:basic-user allows it.",
            )  # fmt: skip
            return
        if refused:
            self._add(
                "rights", Level.PROBLEM,
                f"The cluster refuses to {' and '.join(refused)} Leases of all namespaces.",
                "Bind the ClusterRole leaseboard-read of deploy/clusterroles.yaml.",
            )  # fmt: skip
            raise _Stop
        self._add("rights", Level.OK, "May get, list and watch Leases of all namespaces.")
        if edits:
            self._add(
                "rights", Level.WARNING,
                f"Admins cannot {', '.join(edits)} Leases of all namespaces.",
                "Bind leaseboard-edit of deploy/clusterroles.yaml, or set LEASEBOARD_READ_ONLY.",
            )  # fmt: skip
        if lacking:
            self._add(
                "rights", Level.WARNING,
                f"May not list {', '.join(lacking)}: incidents have less evidence.",
                "Bind leaseboard-evidence of deploy/clusterroles.yaml, or leave it so.",
            )  # fmt: skip

    async def _refused(self, verbs: tuple[str, ...]) -> list[str]:
        return [verb for verb in verbs if not await self._may(verb, "leases", GROUP)]

    async def _may(self, verb: str, resource: str, group: str) -> bool:
        return await may(
            self._client, verb, "", resource=resource, group=group, within=self._seconds
        )

    async def _watch(self) -> None:
        try:
            version = await self._client.newest_version()
        except NotFound:
            self._add(
                "watch", Level.PROBLEM, "The cluster does not serve coordination.k8s.io/v1.",
                "Check the address; Kubernetes serves Leases since 1.14.",
            )  # fmt: skip
            return
        except ApiError as error:
            raise self._fail("rights" if isinstance(error, Forbidden) else "list", error) from None
        began = time.monotonic()
        try:
            async with self._client.open_watch(version, timeout_seconds=60) as watch:
                opened = time.monotonic() - began
                first = await _first_event(watch.readings().__anext__, self._listen)
        except _Ended:
            self._add(
                "watch", Level.WARNING, "A watch opened, but the server ended it at once.",
                "A proxy in between may cut long answers: look at its timeouts and buffers.",
            )  # fmt: skip
            return
        except ApiError as error:
            raise self._fail("watch", error) from None
        heard = "no event within" if first is None else "the first event after"
        seconds = self._listen if first is None else first
        found = f"A watch opened in {opened * 1000:,.0f} ms; {heard} {seconds:.1f} s."
        slow = opened > SLOW_SECONDS
        do = "Look at the load of the API server and at the network." if slow else ""
        self._add("watch", Level.WARNING if slow else Level.OK, found, do)


async def _first_event(read: Callable[[], object], within: float) -> float | None:
    """Seconds to the first event; None: none came. Raises _Ended."""
    began = time.monotonic()
    try:
        async with asyncio.timeout(within):
            await read()  # type: ignore[misc]
    except TimeoutError:
        return None
    except StopAsyncIteration:
        raise _Ended from None
    return time.monotonic() - began
