"""`doctor`: what is wrong with this installation, and what to do about it."""

import asyncio
import os
import platform
import sys
from argparse import ArgumentParser, ArgumentTypeError
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import msgspec
from django.conf import settings
from django.core.management.base import CommandError
from django.db import Error

from dashboard import clock
from dashboard.access.kept_secrets import KUBECONFIGS, CannotUnseal, unseal, unseal_text
from dashboard.config import PREFIX, VERSION, ClusterSpec, Config, check_clusters, parse_cluster
from dashboard.log_lines import hide, redact
from dashboard.management import setup_diagnosis
from dashboard.management.refusing import RefusingCommand, parse_port
from dashboard.parts.cluster_diagnosis import Finding, Level, examine_cluster, examine_secrets
from dashboard.serving.tasks.clock_watch import CONFIRM, contradiction
from leases.domain.notify import Sort, Target
from leases.history import trusted_clock
from leases.kube.cluster_source import ClusterSource, Kubeconfig, SourceKind
from leases.kube.given_kubeconfig import FOLDER, credentials_in
from leases.models import AddedCluster, Receiver

EXIT_CODES = {Level.OK: 0, Level.WARNING: 1, Level.PROBLEM: 2}
MAX_SECONDS = 300.0
PASTE = "Paste it again at /clusters/, or give all replicas the same LEASEBOARD_SECRET_KEY."


class Command(RefusingCommand):
    help = "Check this installation. Exit code: 0 all is well, 1 warnings, 2 problems."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--format", choices=["text", "json"], default="text")
        parser.add_argument(
            "--cluster", action="append", metavar="NAME=SOURCE", help="as for serve"
        )
        parser.add_argument("--host", default="127.0.0.1", help="as for serve")
        parser.add_argument("--port", type=parse_port, default=8000, help="as for serve")
        parser.add_argument(
            "--timeout", type=_seconds, default=10.0, help="seconds to wait for each answer (10)"
        )

    def handle(
        self, *, cluster: list[str] | None, host: str, port: int, timeout: float, **options: Any
    ) -> None:
        config: Config = settings.LEASEBOARD
        if cluster:
            config = replace(config, clusters=_parsed(cluster))
        findings = [
            Finding(
                check="version",
                level=Level.OK,
                found=f"Leaseboard {VERSION}, Python {platform.python_version()}.",
            ),
            *setup_diagnosis.examine_settings(
                config, [name for name in os.environ if name.startswith(PREFIX)]
            ),
            setup_diagnosis.examine_memory(),
            setup_diagnosis.examine_port(host, port, _host_of(config)),
            *_data(config, timeout),
            *asyncio.run(_clusters(config, timeout)),
        ]
        findings = [
            msgspec.structs.replace(one, found=redact(one.found), do=redact(one.do))
            for one in findings
        ]
        level = setup_diagnosis.worst(findings)
        if options["format"] == "json":
            report = {"version": VERSION, "now": clock.now(), "worst": level, "checks": findings}
            self.stdout.write(msgspec.json.format(msgspec.json.encode(report)).decode())
        else:
            self.stdout.write("\n".join(one.line for one in findings))
        if level is not Level.OK:
            sys.exit(EXIT_CODES[level])


def _parsed(texts: list[str]) -> tuple[ClusterSpec, ...]:
    try:
        clusters = check_clusters(tuple(map(parse_cluster, texts)))
    except ValueError as error:
        raise CommandError(f"--cluster: {str(error).rstrip('.')}.") from None
    hide(*(spec.source.token for spec in clusters))
    return clusters


def _data(config: Config, seconds: float) -> list[Finding]:
    """The disk and the database; neither, where the data directory cannot be used."""
    if any(finding.check == setup_diagnosis.DATA for finding in setup_diagnosis.set_aside):
        return []
    database = setup_diagnosis.examine_database(config, settings.SQLITE_FILE, seconds=seconds)
    file = settings.SQLITE_FILE
    made = file is None or file.exists()  # asking must not make an SQLite file
    worst = setup_diagnosis.worst(database)
    return [
        setup_diagnosis.examine_disk(config.data),
        *setup_diagnosis.examine_files(
            config.data,
            settings.STATIC_ROOT,
            embedded=any(one.source.kind is SourceKind.EMBEDDED for one in config.clusters),
        ),
        *database,
        *(examine_receivers(seconds=seconds) if made and worst is Level.OK else ()),
        *(_added(config, seconds) if made and worst is Level.OK else ()),
        *(_clock() if made and worst is not Level.PROBLEM else ()),
    ]


def _added(config: Config, seconds: float) -> list[Finding]:
    """Each cluster that admins added and did not pause."""
    try:
        rows = list(AddedCluster.objects.filter(paused_at=None, removed_at=None).order_by("name"))
    except Error:
        return []  # the check of the database says why
    findings, specs = [], []
    for row in rows:
        try:
            given = msgspec.json.decode(unseal_text(row.sealed, KUBECONFIGS))
        except (CannotUnseal, msgspec.MsgspecError):
            found, problem = "Its kubeconfig was stored with another secret key.", Level.PROBLEM
            findings.append(
                Finding(check="source", cluster=row.name, level=problem, found=found, do=PASTE)
            )
            continue
        hide(*credentials_in(given))
        held = Kubeconfig(given, config.data / FOLDER)
        source = ClusterSource(SourceKind.ADDED, row.server, held=held)
        specs.append(ClusterSpec(row.name, source))
    clusters = replace(config, clusters=tuple(specs), cluster_secrets=None)
    return findings + asyncio.run(_clusters(clusters, seconds))


def _clock() -> list[Finding]:
    """Whether the clock fits to history, as retention judges it."""
    now = clock.now()
    try:
        until = trusted_clock.trusted_until()
    except Error:  # the tables are made at the next start
        return []
    level, do = Level.OK, ""
    found = "It fits to history." if until else "There is no history that it could contradict."
    if not trusted_clock.agrees(now, until) and until is not None:
        level, found = Level.WARNING, contradiction(now, until)
        do = f"Nothing is deleted for its age until they agree. {CONFIRM}."
    return [Finding(check="clock", level=level, found=found, do=do)]


async def _clusters(config: Config, seconds: float) -> list[Finding]:
    examined = [
        examine_cluster(spec, config, seconds=seconds, now=clock.now) for spec in config.clusters
    ]
    try:
        secrets = await examine_secrets(config, seconds=seconds, now=clock.now)
    except ValueError as error:  # of the setting
        problem = Level.PROBLEM
        secrets = [Finding(check="secrets", level=problem, found=str(error))]
    return [finding for found in await asyncio.gather(*examined) for finding in found] + secrets


def _host_of(config: Config) -> str:
    """A name that the pages answer to."""
    name = config.allowed_hosts[0]
    return "localhost" if name == "*" else name.lstrip(".")


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= MAX_SECONDS:
        raise ArgumentTypeError(f"{text!r} is no time; write seconds up to {MAX_SECONDS:g}")
    return seconds


CHECK = "receiver"
# The kustomize components of deploy/ that let the connections of a sort out of the cluster.
COMPONENTS = {
    Sort.ALERTMANAGER: "deploy/components/alertmanager",
    Sort.EMAIL: "deploy/components/email",
    Sort.WEBHOOK: "deploy/components/webhook",
}


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where a receiver listens."""

    name: str
    sort: str
    host: str
    port: int


def examine_receivers(*, seconds: float) -> list[Finding]:
    """One line for each receiver that is on. No answer is waited for longer."""
    try:
        receivers = list(Receiver.objects.filter(enabled=True).order_by("name"))
    except Error:
        return []  # the check of the database says why
    findings, places = [], []
    for receiver in receivers:
        try:
            target = unseal(receiver.sealed)
        except CannotUnseal as error:
            found = f"{receiver.name} was stored with another secret key."
            findings.append(Finding(check=CHECK, level=Level.PROBLEM, found=found, do=str(error)))
        else:
            places.append(place_of(receiver.name, receiver.sort, target))
    return findings + asyncio.run(_reach_all(places, seconds))


def place_of(name: str, sort: str, target: Target) -> Place:
    """Only the host of an address may be shown: that of a Slack channel is a secret."""
    if sort == Sort.EMAIL:
        return Place(name=name, sort=sort, host=target.host, port=target.port)
    url = urlsplit(target.url)
    port = url.port or (443 if url.scheme == "https" else 80)
    return Place(name=name, sort=sort, host=url.hostname or "", port=port)


async def _reach_all(places: list[Place], seconds: float) -> list[Finding]:
    return await asyncio.gather(*(_reach(place, seconds) for place in places))


async def _reach(place: Place, seconds: float) -> Finding:
    """Open a connection and close it."""
    where = f"{place.name} ({place.sort}) at {place.host} port {place.port}"
    try:
        async with asyncio.timeout(seconds):
            _, writer = await asyncio.open_connection(place.host, place.port)
    except TimeoutError:
        return _unreachable(place, f"{where} did not answer within {seconds:g} s.")
    except OSError as error:
        return _unreachable(place, f"{where} cannot be reached ({error.strerror or error}).")
    writer.close()
    return Finding(check=CHECK, level=Level.OK, found=f"{where} can be reached.")


def _unreachable(place: Place, found: str) -> Finding:
    do = "Check the address, and that a firewall lets this connection out."
    component = COMPONENTS.get(Sort(place.sort))
    if component:
        do = f"{do} On Kubernetes the NetworkPolicy must allow the port: add {component}."
    return Finding(check=CHECK, level=Level.PROBLEM, found=found, do=do)
