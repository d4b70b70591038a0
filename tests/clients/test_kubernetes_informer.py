"""The official Python client's informer: a cache that a watch keeps in step."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.apiserver.clients import Process
from tests.clients.kubeconfigs import without_tls
from tests.clients.presence import imported
from tests.clients.somebody import Somebody
from tests.support.processes import free_port, wait_for

pytestmark = pytest.mark.clients
Told = tuple[str, str, str]


@contextmanager
def informed(kubeconfig: Path, namespace: str, **more: Any) -> Iterator[tuple[Any, Any]]:
    """A running informer, and the queue of its notifications."""
    config, client = imported("kubernetes.config"), imported("kubernetes.client")
    connection = config.new_client_from_config(str(kubeconfig))
    api = client.CoordinationV1Api(connection)
    informer = imported("kubernetes.informer").SharedInformer(
        api.list_namespaced_lease, namespace=namespace, **more
    )
    lines: queue.Queue[Told] = queue.Queue()
    for kind in ("ADDED", "MODIFIED", "DELETED"):
        informer.add_event_handler(kind, lambda found, kind=kind: lines.put(line(kind, found)))
    informer.start()
    try:
        yield informer, lines
    finally:
        informer.stop()
        connection.close()


def line(kind: str, lease: Any) -> Told:
    return kind, lease.metadata.name, lease.spec.holder_identity


def test_the_cache_follows_what_happens(
    kubeconfig: Path, namespace: str, somebody: Somebody
) -> None:
    somebody.create("one", "a")
    with informed(kubeconfig, namespace) as (informer, lines):
        assert lines.get(timeout=60) == ("ADDED", "one", "a")
        somebody.hand_over("one", "b")
        assert lines.get(timeout=60) == ("MODIFIED", "one", "b")
        somebody.create("two", "c")
        assert lines.get(timeout=60) == ("ADDED", "two", "c")
        somebody.delete("one")
        assert lines.get(timeout=60) == ("DELETED", "one", "b")
        assert informer.cache.list_keys() == [f"{namespace}/two"]


def test_a_selector_makes_leases_come_and_go(
    kubeconfig: Path, namespace: str, somebody: Somebody
) -> None:
    with informed(kubeconfig, namespace, label_selector="app=x") as (_, lines):
        somebody.create("other", "a", app="y")
        somebody.create("one", "a", app="x")
        assert lines.get(timeout=60) == ("ADDED", "one", "a")
        somebody.client.call(
            "PATCH",
            f"{somebody.leases}/one",
            {"metadata": {"labels": {"app": None}}},
            content_type="application/merge-patch+json",
        )
        assert lines.get(timeout=60) == ("DELETED", "one", "a")


def test_it_lists_anew_when_the_server_came_back(tmp_path: Path) -> None:
    api = Process(tmp_path / "data", "--port", str(free_port()))
    with api:
        somebody = Somebody(api.url, "default")
        somebody.create("one", "a")
        somebody.close()
        # Python's ssl leaves the socket open of what is reset before it could shake hands.
        plain = without_tls(api, tmp_path / "kubeconfig")
        with informed(plain, "default") as (informer, lines):
            assert lines.get(timeout=60) == ("ADDED", "one", "a")
            api.kill()
            api.start()
            somebody = Somebody(api.url, "default")
            somebody.hand_over("one", "b")
            wait_for(
                lambda: informer.cache.get_by_key("default/one").spec.holder_identity == "b",
                what="the informer to see what happened after the restart",
            )
            somebody.delete("one")
            somebody.close()
            wait_for(lambda: not informer.cache.list_keys(), what="the deletion")
