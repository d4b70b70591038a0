"""Fixtures and habits for every room."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from collections.abc import Iterator
from functools import cache
from types import SimpleNamespace

import pytest
import uvicorn.server
from django.db import connections
from django.template.base import Template
from hypothesis import HealthCheck, settings
from pytest_django import DjangoDbBlocker

from leases.history import change_counts
from tests.support import processes
from tests.support.board import admin, board, guest, operator
from tests.support.postgres import postgres
from tests.support.programs import prepared, tables
from tests.support.programs.forked import Forking
from tests.support.quick_flush import QuickFlush

__all__ = ["admin", "board", "guest", "operator", "postgres"]

# How long an example takes to make and to run says how busy the machine is.
settings.register_profile(
    "few", max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("many", settings.get_profile("few"), max_examples=100)
settings.load_profile("few")  # CI asks for many: --hypothesis-profile=many

processes.forking = Forking()
prepared.share()

gc.disable()  # while the tests are collected, of which nothing is garbage

# A server asks ten times a second whether it is to stop, and hundreds of tests wait for that.
uvicorn.server.asyncio = SimpleNamespace(  # type: ignore[assignment]
    **{**vars(asyncio), "sleep": lambda seconds: asyncio.sleep(seconds / 10)}
)

_render = Template._render

# Longest first: begun last, one of these would leave the other workers without work.
LONGEST = (
    "tests/test_postgresql.py",
    "tests/serving/survival/test_poison.py",
    "tests/serving/tasks/test_wrong_starts.py",
    "tests/apiserver/storage/test_durability.py",
    "tests/browser/test_every_page.py",
    "tests/browser/test_lease_page.py",
    "tests/browser/test_lease_forms.py",
    "tests/browser/test_live_incidents.py",
    "tests/browser/test_not_live.py",
    "tests/browser/test_causes_story.py",
    "tests/browser/test_connection.py",
    "tests/browser/",  # one after another: a worker keeps its Chromium while they last
    "tests/pages/across/test_every_parameter.py",
    "tests/serving/survival/",
    "tests/apiserver/test_conformance.py",
    "tests/clients/kubectl/test_script.py",
    "tests/serving/requests/test_sign_in_flood.py",
    "tests/serving/tasks/test_deletions.py",
    "tests/serving/test_clusters_live.py",
    "tests/access/test_matrix.py",
    "tests/serving/",
    "tests/deploy/",
    "tests/benchmarks_run/",
    "tests/notify/",
    "tests/actions/test_unanswered_writes.py",
    "tests/domain/cause/test_variants.py",
    "tests/pages/edit/",
)


def pytest_configure(config: pytest.Config) -> None:
    """Compile each module once, also where Python is to leave no bytecode beside it."""
    if sys.dont_write_bytecode and hasattr(config, "cache"):
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # workers and programs inherit it
        folder = str(config.cache.mkdir("bytecode"))
        sys.pycache_prefix = os.environ["PYTHONPYCACHEPREFIX"] = folder
        sys.dont_write_bytecode = False


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=_place)


def pytest_collection_finish(session: pytest.Session) -> None:
    gc.freeze()  # what is loaded now stays: no collection need look at it
    gc.set_threshold(20_000)  # a page is drawn from more objects than the usual 700
    gc.enable()


def _place(item: pytest.Item) -> int:
    return _place_of(item.nodeid.partition("::")[0])


@cache
def _place_of(file: str) -> int:
    """Where in LONGEST a file of tests is; behind all of them if it is in none."""
    places = (place for place, start in enumerate(LONGEST) if file.startswith(start))
    return next(places, len(LONGEST))


@pytest.fixture(autouse=True, scope="session")
def _plain_rendering(django_test_environment: None) -> None:
    """Django's test environment copies the context of each template; no test reads the copies."""
    Template._render = _render  # type: ignore[method-assign]


@pytest.fixture(scope="session")
def django_db_keepdb(django_db_keepdb: bool, django_db_blocker: DjangoDbBlocker) -> bool:
    """Whether the tables of the tests' database are there already: in SQLite they are."""
    with django_db_blocker.unblock():
        return tables.begin() or django_db_keepdb


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    with django_db_blocker.unblock():
        QuickFlush().install()
    yield
    with django_db_blocker.unblock():
        connections.close_all()


@pytest.fixture(autouse=True)
def _patient_counting(monkeypatch: pytest.MonkeyPatch) -> None:
    """How much of a strip is counted in time says how busy the machine is, too."""
    monkeypatch.setattr(change_counts, "SECONDS", 60.0)
