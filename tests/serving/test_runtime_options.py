"""What a runtime is started with reaches its parts, under any server."""

from __future__ import annotations

from datetime import timedelta

import pytest

from dashboard.board import install_board, running_board
from dashboard.config import ClusterSpec
from dashboard.serving import runtime
from dashboard.serving.runtime import Options, Runtime
from leases.kube.cluster_source import ClusterSource, SourceKind

pytestmark = pytest.mark.django_db(transaction=True)


def test_another_cluster_is_found_by_the_kubeconfig_that_was_named(tmp_path):
    named = (tmp_path / "config",)
    running = Runtime(
        Options(
            clusters=(ClusterSpec("b", ClusterSource(SourceKind.CONTEXT)),),
            data=tmp_path,
            kubeconfig=named,
        )
    )
    assert running._kubeconfig_of(running.clusters["b"]) == named
    running.rights.close()


def test_the_threshold_of_abandoned_leases_reaches_every_cluster(tmp_path):
    spec = ClusterSpec("a", ClusterSource(SourceKind.EMBEDDED))
    running = Runtime(Options(clusters=(spec,), data=tmp_path, abandoned_seconds=7))
    assert running.clusters["a"].store.abandoned_after == timedelta(seconds=7)


async def test_a_process_without_options_goes_by_its_settings(tmp_path, monkeypatch, settings):
    config = settings.LEASEBOARD
    named = runtime._from_settings()
    assert (named.clusters, named.data, named.kubeconfig) == (
        config.clusters, config.data, config.kubeconfig,
    )  # fmt: skip
    assert (named.retention_days, named.retention_rows, named.abandoned_seconds) == (
        config.retention_days, config.retention_rows, config.abandoned_seconds,
    )  # fmt: skip
    assert named.reliability_days == config.reliability_days == 1100
    assert not named.demo
    monkeypatch.setattr(runtime, "_options", None)
    runtime.configure(Options(clusters=(), data=tmp_path))
    running = await runtime.launch()
    try:
        assert running_board() is running
        assert running.options.data == tmp_path
        assert ("recorder", "") in running.supervisor.restarts  # it was started
    finally:
        install_board(None)
        await running.stop()
