"""`serve`: everything in one process. Prints where to look and how to sign in."""

import asyncio
import logging
import os
import socket
import sys
from argparse import ArgumentParser
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from django.urls import reverse

from dashboard import clock
from dashboard.access import sign_in_links
from dashboard.access.links import BadLinkFile, path_of, printed_wall_link
from dashboard.access.security_log import SecurityEvent, record
from dashboard.config import (
    ClusterSpec,
    Config,
    ConfigError,
    check_clusters,
    check_names,
    parse_cluster,
    secrets_place,
)
from dashboard.log_lines import hide
from dashboard.management.refusing import (
    HELP,
    LAST_PORT,
    RefusingCommand,
    origin_of,
    pages_port,
    parse_gates,
    parse_port,
    shown_path,
)
from dashboard.serving import request_threads, runtime
from dashboard.serving.data_directory import history_lock
from dashboard.serving.pages_port import DrainingServer, collect, pages_server
from leases.apiserver.http.port import CannotStart
from leases.apiserver.serving import check_data
from leases.history.database import turn
from leases.kube.cluster_source import SourceKind
from leases.kube.connect import connect
from leases.listener.limits import allow_open_files
from leases.private_files import InUse
from leases.worker_threads import at_work, end_after_signals

ADMIN = "admin"


class Command(RefusingCommand):
    help = "Watch the clusters and serve the pages. With no cluster at hand, an embedded one."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
        parser.add_argument(
            "--port", type=parse_port, help="port of the pages (PORT of the environment, else 8000)"
        )
        parser.add_argument(
            "--api-port",
            type=parse_port,
            help="port of the embedded Lease API (that of the pages + 1)",
        )
        parser.add_argument(
            "--cluster",
            action="append",
            metavar="NAME=SOURCE",
            help="watch this cluster: embedded, in-cluster, context:CONTEXT or url:http(s)://HOST",
        )
        parser.add_argument(
            "--no-demo", action="store_true", help="no activity in the embedded API"
        )
        parser.add_argument(
            "--feature-gates",
            type=parse_gates,
            default=frozenset(),
            metavar="GATE=true|false,...",
            help=HELP,
        )

    def handle(self, *, host: str, port: int | None, no_demo: bool, **options: Any) -> None:
        runtime.choose_memory()
        port = pages_port(port)
        config: Config = settings.LEASEBOARD
        clusters = config.clusters
        if options["cluster"]:
            try:
                clusters = check_clusters(tuple(parse_cluster(c) for c in options["cluster"]))
            except ValueError as error:
                raise CommandError(f"--cluster: {str(error).rstrip('.')}.") from None
            hide(*(spec.source.token for spec in clusters))
        embedded = any(spec.source.kind is SourceKind.EMBEDDED for spec in clusters)
        api_port = _api_port(port, options["api_port"]) if embedded else 0
        _check_sources(clusters, config)
        pages = _bind(host, port, "--port")
        if embedded:
            _bind(host, api_port, "--api-port").close()
        _lock_history(settings.SQLITE_FILE)
        self._prepare(config.data)
        if embedded:
            _check_lease_api(config.data)
        runtime.configure(
            runtime.Options(
                clusters=clusters,
                data=config.data,
                secrets=secrets_place(config),
                host=host,
                api_port=api_port,
                kubeconfig=config.kubeconfig,
                labels=config.cluster_labels,
                read_only=config.read_only,
                impersonate=config.impersonate,
                demo=embedded and not no_demo,
                feature_gates=options["feature_gates"],
                abandoned_seconds=config.abandoned_seconds,
                retention_days=config.retention_days,
                retention_rows=config.retention_rows,
                reliability_days=config.reliability_days,
            )
        )
        names = [spec.name for spec in clusters]
        self._greet(config.url or origin_of(host, port), names, embedded, config)
        self._serve(pages)

    def _prepare(self, data: Path) -> None:
        """Database, static files and the first admin."""
        with turn("migrate"):
            call_command("migrate", interactive=False, verbosity=0)
        try:
            collect(settings.STATIC_ROOT)
        except OSError as error:
            reason = error.strerror or error
            raise CommandError(
                f"Static files cannot be put into {settings.STATIC_ROOT} ({reason}): remove it, or "
                "choose another LEASEBOARD_DATA."
            ) from error

    def _greet(self, origin: str, clusters: list[str], embedded: bool, config: Config) -> None:
        """Say where to look. A log that others read gets no link that signs in."""
        admin = _first_admin()
        terminal = config.print_links == "terminal" and self.stdout.isatty()
        if terminal or config.print_links == "always":
            wall = _wall(config.data, clusters)
            sign_in = f"{origin}{_sign_in(admin)}"
        else:
            wall = reverse("wall_links")
            port = "" if config.url else f" --port {urlsplit(origin).port}"
            sign_in = f"python3 manage.py sign_in_link {admin}{port}  (prints a link)"
        lines = [
            f"Leaseboard   {origin}{reverse('overview', args=[clusters[0]])}",
            f"Sign in      {sign_in}",
            f"Wall         {origin}{wall}",
        ]
        if embedded:
            kubeconfig = shown_path(config.data / "kubeconfig")
            lines.append(f"kubectl      kubectl --kubeconfig {kubeconfig} get leases -A --watch")
        lines.append("Stop         Ctrl-C")
        self.stdout.write("\n".join(lines))
        self.stdout.flush()
        connection.close()  # what serves from here on has connections of its own

    def _serve(self, pages: socket.socket) -> None:
        config: Config = settings.LEASEBOARD
        server = pages_server(
            "dashboard.asgi:application",
            files=allow_open_files(),
            drain_seconds=config.drain_seconds,
        )
        end_after_signals(drain_seconds=config.drain_seconds)
        with suppress(KeyboardInterrupt, SystemExit):  # uvicorn's own for a failed start
            asyncio.run(_run(server, pages))
        if not server.started:
            sys.exit(1)


def _record(printed: str) -> None:
    """Whoever reads what `serve` prints can use the link, so that belongs into the security log."""
    about = f"{printed}, printed by serve"
    record(SecurityEvent.LINK_CREATED, who="manage.py", address="", about=about)


async def _run(server: DrainingServer, pages: socket.socket) -> None:
    try:
        await server.serve(sockets=[pages])
    finally:
        # Python would wait for threads whose work nobody waits for.
        if server.started and (request_threads.at_work or at_work()):
            logging.shutdown()
            os._exit(0)


def _api_port(port: int, chosen: int | None) -> int:
    """The port of the embedded Lease API: as chosen, else the one after the pages'."""
    if chosen is None and port == LAST_PORT:
        raise CommandError(
            f"--port {port} leaves no port after it for the embedded Lease API: choose one with "
            "--api-port."
        )
    return chosen or port + 1


def _check_sources(clusters: tuple[ClusterSpec, ...], config: Config) -> None:
    """What only a person can put right stops the start; whether a cluster answers is seen later."""
    try:
        place = secrets_place(config)
        if place is None:  # else a Secret may name the cluster later
            check_names(config, clusters)
        else:
            asyncio.run(connect(place.source, kubeconfig=config.kubeconfig))
    except ConfigError as error:
        raise CommandError(str(error)) from None
    except ValueError as error:
        raise CommandError(f"LEASEBOARD_CLUSTER_SECRETS: {str(error).rstrip('.')}.") from error
    for spec in clusters:
        if spec.source.kind is SourceKind.EMBEDDED:
            continue
        try:
            asyncio.run(connect(spec.source, kubeconfig=config.kubeconfig))
        except ValueError as error:
            raise CommandError(f"Cluster {spec.name}: {str(error).rstrip('.')}.") from error


def _lock_history(database: Path | None) -> None:
    """Hold this SQLite history until the process ends: two processes would each take the rows of
    the other for news. Replicas share a PostgreSQL instead.
    """
    if database is None:
        return
    refusal = (
        f"Another serve writes the history in {os.path.realpath(database)}: stop it, give this one "
        "another LEASEBOARD_DATA, or let both share a PostgreSQL (LEASEBOARD_DATABASE_URL)."
    )
    try:
        history_lock(database, refusal=refusal).take()
    except InUse as error:
        raise CommandError(str(error)) from error
    except OSError as error:
        raise CommandError(
            f"The database cannot be locked: {error}. "
            "Check LEASEBOARD_DATA and LEASEBOARD_DATABASE_URL."
        ) from error


def _check_lease_api(data: Path) -> None:
    """Check the embedded API's data before the greeting is printed."""
    try:
        check_data(data)
    except (InUse, CannotStart) as error:
        raise CommandError(str(error)) from error


def _bind(host: str, port: int, option: str) -> socket.socket:
    """A listening socket, or one sentence about why there is none."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(1)
    except (socket.gaierror, TypeError, ValueError) as error:  # Python's own for an odd name
        listener.close()
        raise CommandError(
            f"--host {host[:100]!r} is no address of this machine: write one, such as 127.0.0.1, "
            "or 0.0.0.0 for all."
        ) from error
    except OSError as error:
        listener.close()
        raise CommandError(
            f"Cannot listen on {host} port {port}: {error.strerror or error}. "
            f"Stop what uses it, or choose another with {option}."
        ) from error
    return listener


def _wall(data: Path, clusters: list[str]) -> str:
    """The path of a wall that opens, or of the page that makes links to walls."""
    try:
        printed = printed_wall_link(data, clusters, now=clock.now())
    except BadLinkFile as error:
        raise CommandError(str(error)) from error
    if printed is None:
        return f"{reverse('wall_links')}  (its link was printed at the first start)"
    shown, token = printed
    _record(f"wall link of {shown}")
    return path_of(token, cluster=shown)


def _sign_in(admin: User) -> str:
    """The path that signs the first admin in, and what there is to know about it."""
    if not admin.is_active:
        return f"{reverse('sign_in')}  (the account {admin} is deactivated: use your own)"
    token = sign_in_links.create(admin, now=clock.now())
    _record(f"sign-in link for {admin}")
    return f"{reverse('sign_in_by_link', args=[token])}  (once, within an hour, as {admin})"


def _first_admin() -> User:
    """The account of the printed link; made on the first start, without a password."""
    user, made = User.objects.get_or_create(
        username=ADMIN, defaults={"is_staff": True, "is_superuser": True}
    )
    if made:
        user.set_unusable_password()
        user.save()
    return user
