"""A runtime that watches nothing: its stores are filled by hand."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib import auth
from django.contrib.auth.models import Group, User
from django.http import HttpRequest
from django.test import AsyncClient, Client

from dashboard.board import install_board
from dashboard.config import ClusterSpec
from dashboard.serving.runtime import Options, Runtime
from leases.domain.lease import Lease, LeaseSpec, ObjectMeta, ObjectName
from leases.domain.watched_times import Connection, ConnectionState
from leases.kube.cluster_source import ClusterSource, SourceKind
from leases.tracking.store import Store
from leases.wire.watch_decoding import Listed

KEY = ObjectName("kube-system", "scheduler")


@pytest.fixture
def board(tmp_path: Path) -> Iterator[Runtime]:
    """Two clusters, a and b, nothing in them yet."""
    specs = (
        ClusterSpec("a", ClusterSource(SourceKind.EMBEDDED)),
        ClusterSpec("b", ClusterSource(SourceKind.IN_CLUSTER)),
    )
    one = Runtime(Options(clusters=specs, data=tmp_path))
    install_board(one)
    yield one
    install_board(None)


def board_of(tmp_path: Path, *names: str) -> Runtime:
    """Live clusters of these names, with one held election each."""
    source = ClusterSource(SourceKind.IN_CLUSTER)
    specs = tuple(ClusterSpec(name, source) for name in names)
    board = Runtime(Options(clusters=specs, data=tmp_path))
    install_board(board)
    for cluster in board.clusters.values():
        fill(cluster.store, a_lease())
        connect(board, cluster.name, ConnectionState.LIVE)
    return board


def connect(
    board: Runtime, name: str, state: ConnectionState, *, ago: float = 60, **more: Any
) -> None:
    at = datetime.now(UTC) - timedelta(seconds=ago)
    watch = Connection(state=state, since=at, heard_at=at, **more)
    board.clusters[name].store.connection = watch
    board.feeds[name].activity.watched.record(watch)


def a_lease(
    key: ObjectName = KEY,
    *,
    holder: str | None = "cp-1",
    version: str = "1",
    now: datetime | None = None,
) -> Lease:
    """A held election Lease, renewed `now`."""
    now = now or datetime.now(UTC)
    return Lease(
        ObjectMeta(
            name=key.name,
            namespace=key.namespace,
            uid=f"uid-{key}",
            resource_version=version,
            creation_timestamp=now - timedelta(days=1),
        ),
        LeaseSpec(
            holder_identity=holder,
            lease_duration_seconds=15,
            acquire_time=now - timedelta(hours=1),
            renew_time=now,
            lease_transitions=3,
        ),
    )


def fill(store: Store, *leases: Lease) -> None:
    """As if the cluster had been listed just now."""
    store.replace(Listed(leases, "100"), datetime.now(UTC))


def member(name: str, role: str | None) -> User:
    user = User.objects.create_user(name)
    if role:
        user.groups.add(Group.objects.get(name=role))
    return user


def session_of(user: User) -> str:
    """The cookie of one who is signed in."""
    session = import_module(settings.SESSION_ENGINE).SessionStore()
    session[auth.SESSION_KEY] = str(user.pk)
    session[auth.BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[-1]
    session[auth.HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.save()
    return str(session.session_key)


def browser_of(user: User) -> Client:
    """Signed in, without what signing in does besides, which takes three times as long."""
    client = Client()
    client.cookies[settings.SESSION_COOKIE_NAME] = session_of(user)
    return client


async def async_browser_of(name: str, role: str | None) -> AsyncClient:
    """A new user who is signed in, for views that write to a cluster."""
    client = AsyncClient()
    client.cookies[settings.SESSION_COOKIE_NAME] = await sync_to_async(
        lambda: session_of(member(name, role))
    )()
    return client


def remember(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each request this user, whose rights are read once: for thousands of requests."""

    def get_user(request: HttpRequest) -> User:
        return user

    async def aget_user(request: HttpRequest) -> User:
        return user

    monkeypatch.setattr(auth, "get_user", get_user)
    monkeypatch.setattr(auth, "aget_user", aget_user)


@pytest.fixture
def operator(db: None) -> Client:
    return browser_of(member("olga", "operator"))


@pytest.fixture
def admin(db: None) -> Client:
    return browser_of(member("ada", "admin"))


@pytest.fixture
def guest(db: None) -> Client:
    return browser_of(member("gil", None))
