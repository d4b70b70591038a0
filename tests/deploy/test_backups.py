"""The CronJobs' own commands make backups that bring everything back, and keep the newest alone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.clients.presence import absent
from tests.deploy.shipped import Manifest, rendered
from tests.support.api_client import LeaseApi
from tests.support.processes import LIMIT, ROOT, environment, manage, serving, wait_for
from tests.support.programs.lease_apis import changes_in

KEPT = 14


def cron_pod(component: str, overlay: str) -> Manifest:
    job = rendered(f"{overlay} with {component}")["CronJob/leaseboard-backup"]
    pod: Manifest = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    return pod


def run_job(pod: Manifest, backups: Path, settings: dict[str, str]) -> None:
    """The command of the container, with a directory for its volume."""
    (container,) = pod["containers"]
    words = [word.replace("/backups", str(backups)) for word in container["args"]]
    subprocess.run(
        [*container["command"], *words], cwd=ROOT, env=settings, check=True, timeout=LIMIT,
        capture_output=True,
    )  # fmt: skip


def old_files(backups: Path, suffix: str) -> list[str]:
    """More than are kept, of earlier days."""
    backups.mkdir()
    names = [f"leaseboard-202001{day:02}T031700Z.{suffix}" for day in range(1, KEPT + 4)]
    for name in names:
        (backups / name).touch()
    return names


def newest(backups: Path, old: list[str]) -> Path:
    """The file that was made; beside it the newest of the old ones are left."""
    files = sorted(path.name for path in backups.iterdir())
    assert files[:-1] == old[-KEPT + 1 :]
    assert (backups / files[-1]).stat().st_mode & 0o077 == 0
    return backups / files[-1]


def names_of(data: Path, **extra: str) -> list[str]:
    done = manage(data, "export_history", "--format", "csv", **extra)
    assert done.returncode == 0, done.stderr
    return sorted(line for line in done.stdout.splitlines() if "backed-up" in line)


def test_the_job_beside_sqlite_makes_what_restore_takes(tmp_path):
    pod = cron_pod("backup-sqlite", "sqlite")
    old = old_files(tmp_path / "backups", "tar")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    with serving(tmp_path / "data", "--no-demo") as server:
        server.wait_synced()
        LeaseApi(server.kubeconfig).create("backed-up", holder="one")
        wait_for(lambda: changes_in(tmp_path / "data", "embedded"), what="the change in history")
        run_job(pod, tmp_path / "backups", environment(tmp_path / "data") | {"PATH": path})
    made = newest(tmp_path / "backups", old)
    done = manage(tmp_path / "other", "restore", str(made))
    assert done.returncode == 0, done.stderr
    assert names_of(tmp_path / "other") == names_of(tmp_path / "data") != []


def test_the_job_beside_sqlite_shares_the_volume_of_the_process():
    pod = cron_pod("backup-sqlite", "sqlite")
    found = rendered("sqlite with backup-sqlite")
    process = found["Deployment/leaseboard"]["spec"]["template"]
    claims = {volume["name"]: volume.get("persistentVolumeClaim") for volume in pod["volumes"]}
    served = {volume["name"]: volume for volume in process["spec"]["volumes"]}
    assert claims["data"] == served["data"]["persistentVolumeClaim"]
    assert f"PersistentVolumeClaim/{claims['backups']['claimName']}" in found
    (term,) = pod["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    chosen = term["labelSelector"]["matchLabels"].items()
    assert chosen <= process["metadata"]["labels"].items()
    assert pod["containers"][0]["image"] == process["spec"]["containers"][0]["image"]


def test_the_pods_of_a_backup_get_no_requests_of_browsers():
    for component, overlay in (("backup-sqlite", "sqlite"), ("backup-postgresql", "postgresql")):
        found = rendered(f"{overlay} with {component}")
        job = found["CronJob/leaseboard-backup"]["spec"]["jobTemplate"]["spec"]["template"]
        selector = found["Service/leaseboard"]["spec"]["selector"]
        assert not selector.items() <= job["metadata"]["labels"].items()


@pytest.mark.long
def test_the_job_beside_postgresql_makes_what_pg_restore_takes(tmp_path, postgres):
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin"))[-1:]
    path = os.pathsep.join([*map(str, programs), os.environ["PATH"]])
    if shutil.which("pg_restore", path=path) is None:
        absent("pg_restore")
    pod = cron_pod("backup-postgresql", "postgresql")
    old = old_files(tmp_path / "backups", "dump")
    database = {"LEASEBOARD_DATABASE_URL": postgres.database()}
    with serving(tmp_path / "data", "--no-demo", **database) as server:
        server.wait_synced()
        LeaseApi(server.kubeconfig).create("backed-up", holder="one")
        wait_for(lambda: names_of(tmp_path / "data", **database), what="the change in history")
        run_job(pod, tmp_path / "backups", {"PATH": path, **database})
    made = newest(tmp_path / "backups", old)
    other = postgres.database()
    restore = ["pg_restore", "--no-owner", "--exit-on-error", f"--dbname={other}", str(made)]
    subprocess.run(restore, env={"PATH": path}, check=True, timeout=LIMIT)
    restored = names_of(tmp_path / "data", LEASEBOARD_DATABASE_URL=other)
    assert restored == names_of(tmp_path / "data", **database) != []


@pytest.mark.parametrize("name", ["backup-sqlite", "backup-postgresql"])
def test_a_job_may_do_nothing_on_its_node(name):
    pod = cron_pod(name, name.partition("-")[2])
    (container,) = pod["containers"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
