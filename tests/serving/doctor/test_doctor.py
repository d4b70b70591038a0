"""`doctor` names the cause of each broken set-up, and what to do; each is really broken."""

from __future__ import annotations

import json
import shutil
import socket
import sqlite3
import ssl
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest
from django.core.management import call_command

from dashboard import clock
from dashboard.access.kept_secrets import KUBECONFIGS, seal, seal_text
from dashboard.config import VERSION, Config, load
from dashboard.management import setup_diagnosis
from leases.apiserver.http.port import KEY, certificate_for, tls_context
from leases.domain.notify import Sort, Target
from leases.kube.given_kubeconfig import read_given
from leases.models import AddedCluster, Receiver
from tests.serving.doctor.api_of_faults import Faults, serving_faults
from tests.support.processes import free_port, manage, prepare
from tests.support.programs.prepared import DATABASE as NAME
from tests.support.programs.prepared import prepared
from tests.support.secret_api import kubeconfig, secret

CANARY = "canary-9b27aa"


@dataclass
class SetUp:
    """What `doctor` examines: the settings, and options of the command."""

    folder: Path
    environ: dict[str, str]
    ended: ExitStack
    patch: Any
    options: list[str] = field(default_factory=list)

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def api(self, **faults: Any) -> str:
        """Watch an API server with these faults; its URL."""
        server = self.ended.enter_context(serving_faults(Faults(**faults)))
        self.environ["LEASEBOARD_CLUSTERS"] = f"prod=url:{server.url}"
        return server.url

    def kubeconfig(self, **parts: Any) -> None:
        config = {"contexts": [], "clusters": [], "users": [], **parts}
        path = self.folder / "kubeconfig"
        path.write_text(json.dumps(config))
        self.environ["LEASEBOARD_KUBECONFIG"] = str(path)


@pytest.fixture
def set_up(tmp_path, monkeypatch, settings, django_db_blocker) -> Iterator[SetUp]:
    """A healthy one: a history, and a cluster that allows everything."""
    data = tmp_path / "data"
    data.mkdir()
    shutil.copy(prepared(prepare) / NAME, data)
    monkeypatch.setattr(setup_diagnosis, "set_aside", [])
    monkeypatch.setattr(setup_diagnosis.data_directory, "look_only", False)
    monkeypatch.setattr(setup_diagnosis, "disk_usage", lambda _: SimpleNamespace(free=1 << 40))
    with ExitStack() as ended, django_db_blocker.unblock():
        made = SetUp(tmp_path, {"LEASEBOARD_DATA": str(data)}, ended, monkeypatch)
        made.api()
        made.options = ["--port", str(free_port()), "--timeout", "20"]
        made.settings = settings  # type: ignore[attr-defined]
        yield made


def examine(set_up: Any) -> tuple[int, list[dict[str, str]], str]:
    """The exit code, the checks as JSON, and the lines for people."""
    setup_diagnosis.set_aside += setup_diagnosis.set_bad_settings_aside(set_up.environ)
    config: Config = load(set_up.environ)
    set_up.settings.LEASEBOARD = config
    set_up.settings.SQLITE_FILE = None if config.database_url else config.data / NAME
    told, code = StringIO(), 0
    try:
        call_command("doctor", "--format", "json", *set_up.options, stdout=told)
    except SystemExit as ended:
        code = int(str(ended.code))
    checks = json.loads(told.getvalue())["checks"]
    return code, checks, told.getvalue()


def other_ca(one: SetUp) -> None:
    folder = one.folder / "tls"
    folder.mkdir()
    certificate_for(folder, "127.0.0.1", now=datetime.now(UTC))
    one.api(tls=tls_context(folder))


def wrong_port(one: SetUp) -> None:
    one.environ["LEASEBOARD_CLUSTERS"] = f"prod=url:http://127.0.0.1:{free_port()}"


def unknown_machine(one: SetUp) -> None:
    one.environ["LEASEBOARD_CLUSTERS"] = "prod=url:https://api.prod.invalid"


def no_context(one: SetUp) -> None:
    one.kubeconfig(contexts=[{"name": "staging", "context": {"cluster": "s", "user": "u"}}])
    one.environ["LEASEBOARD_CLUSTERS"] = "prod=context:prod"


def no_kubeconfig(one: SetUp) -> None:
    one.environ["LEASEBOARD_KUBECONFIG"] = str(one.folder / "nowhere")
    one.environ["LEASEBOARD_CLUSTERS"] = "prod=context:prod"


def no_database_server(one: SetUp) -> None:
    url = f"postgresql://u:{CANARY}@127.0.0.1:{free_port()}/x"
    one.environ["LEASEBOARD_DATABASE_URL"] = url


def garbage(one: SetUp) -> None:
    (one.data / NAME).write_bytes(b"SQLite format 3\0" + b"garbage" * 1000)


def bad_page(one: SetUp) -> None:
    with closing(sqlite3.connect(one.data / NAME)) as opened:
        page = "SELECT rootpage FROM sqlite_master WHERE name = 'leases_change'"
        start = (opened.execute(page).fetchone()[0] - 1) * 4096
    content = bytearray((one.data / NAME).read_bytes())
    content[start : start + 4096] = b"\xff" * 4096
    (one.data / NAME).write_bytes(content)


def execute(one: SetUp, statement: str) -> None:
    with closing(sqlite3.connect(one.data / NAME)) as opened, opened:
        opened.execute(statement)


def newer(one: SetUp) -> None:
    execute(one, "INSERT INTO django_migrations VALUES (9999, 'leases', '9999_x', '')")


def older(one: SetUp) -> None:
    execute(one, "DELETE FROM django_migrations WHERE name = '0015_index_of_causes'")


def small_disk(one: SetUp) -> None:
    one.patch.setattr(setup_diagnosis, "disk_usage", lambda _: SimpleNamespace(free=9 << 20))


def kept(name: str, content: bytes) -> Callable[[SetUp], None]:
    """A file of the data directory, where the embedded API is watched."""

    def spoil(one: SetUp) -> None:
        (Path(one.environ["LEASEBOARD_DATA"]) / name).write_bytes(content)
        one.options += ["--cluster", "embedded=embedded"]

    return spoil


def in_a_circle(name: str) -> Callable[[SetUp], None]:
    def spoil(one: SetUp) -> None:
        path = Path(one.environ["LEASEBOARD_DATA"]) / name
        path.unlink(missing_ok=True)
        path.symlink_to(path)

    return spoil


def static_file(one: SetUp) -> None:
    file = Path(one.environ["LEASEBOARD_DATA"]) / "static"
    file.write_text("")
    one.settings.STATIC_ROOT = file  # type: ignore[attr-defined]


def taken_port(one: SetUp) -> None:
    taken = one.ended.enter_context(socket.create_server(("127.0.0.1", 0)))
    one.patch.setattr(setup_diagnosis, "ANSWER_SECONDS", 0.2)
    one.options[1] = str(taken.getsockname()[1])


def older_process(one: SetUp) -> None:
    one.options[1] = one.api(leaseboard="0.0.9").rpartition(":")[2]


def setting(name: str, value: str) -> Callable[[SetUp], None]:
    return lambda one: one.environ.update({f"LEASEBOARD_{name}": value})


def faulty(**faults: Any) -> Callable[[SetUp], Any]:
    return lambda one: one.api(**faults)


def hanging(one: SetUp) -> None:
    one.api(hangs=True)
    one.options[3] = "0.5"


# How it is broken, the check that finds it, what that says, what it says to do, the exit code.
BROKEN: dict[str, tuple[Callable[[SetUp], Any], str, str, str, int]] = {
    "wrong port": (wrong_port, "reach", "connection refused", "Check that the API server runs", 2),
    "unknown machine": (unknown_machine, "reach", "Cannot find the machine", "name service", 2),
    "unknown CA": (other_ca, "reach", "do not trust each other", "certificate authority", 2),
    "expired token": (
        faulty(status=401), "sign-in", "does not accept our credentials", "Renew the token", 2,
    ),
    "no list": (faulty(refused=("list",)), "rights", "refuses to list Lea", "leaseboard-read", 2),
    "no watch": (
        faulty(refused=("watch",)), "rights", "refuses to watch Leases", "leaseboard-read", 2,
    ),
    "no edit": (
        faulty(refused=("patch",)), "rights", "Admins cannot patch", "LEASEBOARD_READ_ONLY", 1,
    ),
    "no evidence": (
        faulty(refused=("pods",)), "rights", "May not list pods", "leaseboard-evidence", 1,
    ),
    "clock an hour off": (faulty(ahead=3600.0), "clock", "s ahead of ours", "NTP", 2),
    "hangs": (hanging, "reach", "did not answer within 0.5 s", "network", 2),
    "no Kubernetes": (
        faulty(version=b"<h1>Welcome</h1>"), "reach", "not as a Kubernetes API", "the port", 2,
    ),
    "no Leases": (faulty(has_leases=False), "watch", "does not serve coordination", "1.14", 2),
    "watch is cut": (faulty(cuts=True), "watch", "ended it at once", "A proxy in between", 1),
    "no kubeconfig": (no_kubeconfig, "source", "no kubeconfig at", "LEASEBOARD_KUBECONFIG", 2),
    "no context": (no_context, "source", "those there are: staging", "Correct the source", 2),
    "data cannot be written": (
        setting("DATA", "/proc/x"), "data directory", "cannot be '/proc/x'", "Name a directory", 2,
    ),
    "small disk": (small_disk, "disk", "9 MiB are free", "Make room", 2),
    "history is garbage": (garbage, "database", "not a database", "restore", 2),
    "history is damaged": (bad_page, "database", "is damaged", "manage.py restore", 2),
    "history is newer": (newer, "database", "newer version", "Install the newer version", 2),
    "history is older": (older, "database", "1 migrations wait", "start serve", 1),
    "history is a circle": (in_a_circle(NAME), "database", "leads nowhere", "remove it", 2),
    "wall link is no text": (kept("wall_link", b"\xff\n"), "files", "not text", "remove it", 2),
    "wall link is a circle": (in_a_circle("wall_link"), "files", "symbolic", "remove it", 2),
    "bad certificate": (kept("lease_api.crt", b"?"), "files", "lease_api.crt", "", 2),
    "bad Lease API": (
        kept("lease_api.sqlite3", b"?" * 9999), "files", "not a database", "good copy", 2,
    ),
    "static is a file": (static_file, "files", "is no directory", "Remove it", 2),
    "PostgreSQL is away": (
        no_database_server, "database", "Connection refused", "LEASEBOARD_DATABASE_URL", 2,
    ),
    "setting is misspelt": (
        setting("RETENTON_DAYS", "9"), "settings", "is not a setting",
        "Did you mean LEASEBOARD_RETENTION_DAYS?", 2,
    ),
    "setting is wrong": (setting("HTTPS", "perhaps"), "settings", "'perhaps'", "true or false", 2),
    "no cluster of that name": (
        setting("READ_ONLY", "prd"), "settings", "names 'prd', which is not watched",
        "Write true, or names among prod.", 2,
    ),
    "links lead to another host": (
        setting("URL", "https://leases.example.com:8443"), "settings", "do not answer to that host",
        "Add leases.example.com to LEASEBOARD_ALLOWED_HOSTS", 2,
    ),
    "secret key is short": (
        setting("SECRET_KEY", CANARY), "settings", "LEASEBOARD_SECRET_KEY", "32 random", 2,
    ),
    "an older process runs": (
        older_process, "port", "Leaseboard 0.0.9 serves", "Restart serve", 1,
    ),
    "port is taken": (taken_port, "port", "Another program uses", "--port", 2),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_the_cause_of_a_broken_set_up_is_named(set_up, name):
    spoil, check, found, do, code = BROKEN[name]
    spoil(set_up)
    ended, checks, told = examine(set_up)
    bad = [one for one in checks if one["level"] != "ok"]
    assert [one["check"] for one in bad] == [check], bad
    assert found in bad[0]["found"]
    assert do in bad[0]["do"]
    assert ended == code
    assert CANARY not in told


def test_a_healthy_set_up_has_only_good_lines_and_exit_code_0(set_up):
    code, checks, _ = examine(set_up)
    assert [one for one in checks if one["level"] != "ok"] == []
    assert code == 0
    assert {one["check"] for one in checks} == {
        "version", "settings", "disk", "files", "memory", "port", "database",
        "reach", "clock", "rights", "watch",
    }  # fmt: skip


def test_a_cluster_of_a_secret_is_examined_over_tls_by_the_certificates_that_the_secret_holds(
    set_up, tmp_path
):
    """Two machines with a certificate each; the Secrets hold the first one's alone."""
    contexts, told = [], []
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        told.append(certificate_for(tmp_path / name, "127.0.0.1", now=datetime.now(UTC)))
        contexts.append(tls_context(tmp_path / name))
    contexts[0].verify_mode = ssl.CERT_REQUIRED  # of clients, which show a certificate of theirs
    contexts[0].load_verify_locations(cadata=told[0].decode())
    pem = (told[0], (tmp_path / "one" / KEY).read_bytes())
    authority, certificate, key = (b64encode(one).decode() for one in (pem[0], *pem))
    mutual = {"client-certificate-data": certificate, "client-key-data": key}
    servers = [
        set_up.ended.enter_context(serving_faults(Faults(tls=one, cuts=True))) for one in contexts
    ]
    texts = {
        name: kubeconfig(server.url, authority, **mutual)
        for name, server in zip(("good", "stranger"), servers, strict=True)
    }
    texts["wrong"] = CANARY
    found = [secret(one, {"leaseboard-cluster": one}, kubeconfig=texts[one]) for one in texts]
    set_up.environ["LEASEBOARD_CLUSTER_SECRETS"] = f"url:{set_up.api(secrets=found)}"
    set_up.environ["LEASEBOARD_CLUSTER_SECRETS_NAMESPACE"] = "board"
    code, checks, text = examine(set_up)
    bad = {(one["check"], one.get("cluster", "")): one for one in checks if one["level"] != "ok"}
    assert bad.keys() == {("secrets", ""), ("reach", "stranger"), ("watch", "good")}
    assert "The Secret wrong names no cluster" in bad["secrets", ""]["found"]
    assert "do not trust each other" in bad["reach", "stranger"]["found"]
    good = {one["check"] for one in checks if one.get("cluster") == "good"}
    assert good == {"reach", "clock", "rights", "watch"}
    assert code == 2
    assert CANARY not in text
    assert key not in text
    assert [path for path in (set_up.data / "secrets").rglob("*") if path.is_file()] == []


def test_a_receiver_that_cannot_be_reached_is_named_with_the_way_out(set_up, db):
    shut = free_port()
    listens = urlsplit(set_up.api()).port
    targets = {
        "pager": (Sort.ALERTMANAGER, Target(url=f"http://127.0.0.1:{shut}/{CANARY}")),
        "mail": (Sort.EMAIL, Target(host="127.0.0.1", port=shut)),
        "chat": (Sort.SLACK, Target(url="https://hooks.slack.invalid/x")),
        "hook": (Sort.WEBHOOK, Target(url=f"http://127.0.0.1:{listens}/")),
    }
    for name, (sort, target) in targets.items():
        Receiver.objects.create(name=name, sort=sort, sealed=seal(target), created_at=clock.now())
    Receiver.objects.create(name="old", sort="slack", sealed="x", created_at=clock.now())
    off = seal(targets["mail"][1])
    Receiver.objects.create(
        name="off", sort="email", sealed=off, enabled=False, created_at=clock.now()
    )
    code, checks, said = examine(set_up)
    found = {one["found"].split()[0]: one for one in checks if one["check"] == "receiver"}
    assert {name: one["level"] for name, one in found.items()} == {
        "pager": "problem", "mail": "problem", "chat": "problem", "hook": "ok", "old": "problem",
    }  # fmt: skip
    assert f"at 127.0.0.1 port {shut} cannot be reached" in found["pager"]["found"]
    assert found["pager"]["do"].endswith("add deploy/components/alertmanager.")
    assert found["mail"]["do"].endswith("add deploy/components/email.")
    assert "deploy" not in found["chat"]["do"]
    assert "LEASEBOARD_SECRET_KEY" in found["old"]["do"]
    assert code == 2
    assert CANARY not in said


def test_each_cluster_that_an_admin_added_is_examined(set_up, db):
    config = read_given(kubeconfig(f"http://127.0.0.1:{free_port()}", token=CANARY), into="it")
    sealed = seal_text(msgspec.json.encode(config).decode(), KUBECONFIGS)
    given = {"added_by": "ada", "added_at": clock.now()}
    AddedCluster.objects.create(name="away", sealed=sealed, **given)
    AddedCluster.objects.create(name="old", sealed="x", **given)
    AddedCluster.objects.create(name="calm", sealed="x", paused_at=clock.now(), **given)
    code, checks, said = examine(set_up)
    found = {one.get("cluster"): one for one in checks}
    assert found["away"]["found"].startswith("Cannot reach http://127.0.0.1:")
    assert found["old"]["do"].startswith("Paste it again at /clusters/")
    assert "calm" not in found
    assert code == 2
    assert CANARY not in said


def test_the_port_of_this_version_is_no_problem(set_up):
    set_up.options[1] = set_up.api(leaseboard=VERSION).rpartition(":")[2]
    code, checks, _ = examine(set_up)
    (port,) = [one for one in checks if one["check"] == "port"]
    assert port["found"].startswith(f"Leaseboard {VERSION} serves")
    assert code == 0


def test_a_check_of_a_large_database_ends_in_time_and_says_so(set_up):
    with closing(sqlite3.connect(set_up.data / NAME)) as opened:
        said = setup_diagnosis._check_whole(opened, set_up.data / NAME, seconds=-1)
    assert said == "not checked to its end within -1 s"


@pytest.mark.parametrize(("file", "text"), [
    ("sys/fs/cgroup/memory.max", "67108864"), ("sys/fs/cgroup/a/b/memory.max", "67108864"),
    ("sys/fs/cgroup/memory/memory.limit_in_bytes", "67108864"),
])  # fmt: skip
def test_the_limit_of_a_container_is_a_problem_if_it_is_too_small(tmp_path, file, text):
    for name, content in {
        "proc/self/cgroup": "0::/a/b\n",
        "proc/meminfo": "MemTotal:       24682000 kB\n",
        "sys/fs/cgroup/a/memory.max": "max",
        file: text,
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    found = setup_diagnosis.examine_memory(tmp_path)
    assert found.level == "problem"
    assert "64 MiB" in found.found


def test_the_command_reports_settings_that_stop_all_others(tmp_path):
    """As a process: manage.py sets them aside before Django reads them."""
    done = manage(
        tmp_path, "doctor", "--port", str(free_port()), LEASEBOARD_NOPE="1", LEASEBOARD_HTTPS="x"
    )
    assert done.returncode == 2
    problems = [line for line in done.stdout.splitlines() if line.startswith("problem")]
    assert len(problems) == 2
    assert "LEASEBOARD_NOPE is not a setting." in done.stdout
    assert done.stderr == ""


def left_by_a_crash(data: Path) -> None:
    """Files of wide modes; what was written last is in the log of the database alone."""
    clean = data.with_name("clean")
    shutil.copytree(prepared(prepare), clean)
    with closing(sqlite3.connect(clean / NAME)) as opened:
        opened.execute("PRAGMA journal_mode = WAL")
        opened.execute("INSERT INTO django_migrations VALUES (9999, 'leases', '9999_x', '')")
        opened.commit()
        shutil.copytree(clean, data)
    (data / "secret_key").write_text("k" * 50)
    (data / "wall_link").write_text("x\n")
    with closing(sqlite3.connect(data / "lease_api.sqlite3")) as api:
        api.executescript("PRAGMA journal_mode = WAL; CREATE TABLE t(x);")
    for path in (data, *data.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda _: None, "There is no "),
        (Path.mkdir, "There is no "),
        (left_by_a_crash, "newer version than"),
    ],
)
def test_the_command_changes_nothing(tmp_path, make, said):
    data = tmp_path / "data"
    make(data)

    def found() -> dict[Path, tuple[int, int, int, int]]:
        there = {path: path.stat() for path in (tmp_path, *tmp_path.rglob("*"))}
        return {
            path: (one.st_ino, one.st_mode, one.st_size, one.st_mtime_ns)
            for path, one in there.items()
        }

    before = found()
    options = "--port", str(free_port()), "--cluster", "embedded=embedded"
    assert said in manage(data, "doctor", *options).stdout
    assert found() == before
