"""`backup` and `restore`: one consistent file, whole or not at all, and no way to lose what was."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sqlite3
import stat
import tarfile
from contextlib import closing
from dataclasses import replace
from io import BytesIO, StringIO

import pytest
from django.conf import settings as real
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection

from dashboard.management import backups
from dashboard.serving.data_directory import NewerDatabase, history_lock
from leases.apiserver.serving import lock_of
from leases.models import SecurityRecord
from tests.support.processes import environment, free_port, manage, prepare, start_python, wait_for
from tests.support.programs.prepared import DATABASE as NAME
from tests.support.programs.prepared import prepared

NEWER = "INSERT INTO django_migrations VALUES (9999, 'leases', '9999_x', '')"


@pytest.fixture
def data(tmp_path, settings, monkeypatch, django_db_blocker):
    """A data directory with an empty history, which the commands of this process use."""
    folder = tmp_path / "data"
    folder.mkdir()
    shutil.copy(prepared(prepare) / NAME, folder)
    settings.LEASEBOARD = replace(real.LEASEBOARD, data=folder)
    settings.SQLITE_FILE = folder / NAME
    (folder / "secret_key").write_text("k" * 50)
    with closing(sqlite3.connect(folder / "lease_api.sqlite3")) as database:
        database.execute("CREATE TABLE objects (name)")
    with django_db_blocker.unblock():
        connection.close()
        monkeypatch.setitem(connection.settings_dict, "NAME", str(folder / NAME))
        yield folder
        connection.close()


def run(*arguments: str) -> str:
    said = StringIO()
    call_command(*map(str, arguments), stdout=said)
    return said.getvalue()


def numbers(database) -> list[int]:
    with closing(sqlite3.connect(database)) as opened:
        found = opened.execute("SELECT transitions FROM leases_change ORDER BY transitions")
        return [number for (number,) in found]


def execute(database, statement: str) -> None:
    with closing(sqlite3.connect(database)) as opened, opened:
        opened.execute(statement)


def test_a_backup_under_a_storm_restores_exactly_the_changes_up_to_a_moment(data, tmp_path):
    file, said = tmp_path / "backup.tar", tmp_path / "said"
    with said.open("a") as told, (tmp_path / "stderr").open("a") as errors:
        writer = start_python(
            "-m", "tests.serving.backups.write_changes",
            env=environment(data), stdout=told, stderr=errors,
        )  # fmt: skip

        def stored() -> int:
            return said.read_text().count("\n")

        try:
            wait_for(lambda: stored() >= 20, what="a writing process")
            before = stored()
            backed_up = run("backup", file)
            after = stored()
            wait_for(lambda: stored() > after + 5, what="writes after the backup")
        finally:
            writer.kill()
            writer.wait()
    with pytest.raises(CommandError, match="exists: choose another name, or add --overwrite"):
        run("backup", file)
    restored = run("restore", file)
    found = numbers(data / NAME)
    assert found == list(range(1, len(found) + 1)), "a gap: not the state of one moment"
    assert before <= len(found) <= after + 1  # one may be stored and not yet printed
    assert f"{len(found):,} changes" in backed_up
    assert f"{len(found):,} changes" in restored
    (aside,) = data.glob("replaced-*")
    assert len(numbers(aside / NAME)) > after, "the replaced database is kept whole, with its log"


def test_a_backup_holds_what_a_restore_needs_for_its_owner_alone(data, tmp_path):
    file = tmp_path / "backup.tar"
    run("backup", file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert SecurityRecord.objects.get().about == "backup backup.tar"
    with tarfile.open(file) as archive:
        names = archive.getnames()
    assert names == ["manifest.json", "lease_api.sqlite3", NAME, "secret_key"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["backup.tar", "data"]
    (data / "secret_key").write_text("x" * 50)
    (data / "lease_api.sqlite3").unlink()
    run("restore", file)
    assert (data / "secret_key").read_text() == "k" * 50
    assert (data / "lease_api.sqlite3").exists()
    assert not list(data.glob("*.restoring"))
    with pytest.raises(CommandError, match=r"cannot be written \(No such file or directory\)"):
        run("backup", tmp_path / "nowhere" / "backup.tar")


@pytest.mark.parametrize("lock", ["history", "lease API"])
def test_restore_refuses_while_a_server_uses_the_directory(data, tmp_path, lock):
    file = tmp_path / "backup.tar"
    run("backup", file)
    held = history_lock(data / NAME, refusal="") if lock == "history" else lock_of(data)
    held.take()
    try:
        with pytest.raises(CommandError, match="stop it"):
            run("restore", file)
    finally:
        held.release()
    run("restore", file)


def repacked(file, change) -> bytes:
    """The backup with its members changed."""
    members = {}
    with tarfile.open(file) as archive:
        for head in archive:
            members[head.name] = archive.extractfile(head).read()
    change(members)
    made = BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for name, content in members.items():
            head = tarfile.TarInfo(name)
            head.size = len(content)
            archive.addfile(head, BytesIO(content))
    return made.getvalue()


def newer_form(members) -> None:
    told = json.loads(members["manifest.json"])
    members["manifest.json"] = json.dumps({"format": 2, "version": "9.0", "rest": told}).encode()


def newer_schema(members) -> None:
    told = json.loads(members["manifest.json"])
    told["migrations"].append("leases.9999_of_next_year")
    told["version"] = "9.1"
    members["manifest.json"] = json.dumps(told).encode()


def other_names(members) -> None:
    told = json.loads(members["manifest.json"])
    content = b"* * * * * root true"
    told["files"]["../crontab"] = {
        "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest(),
    }  # fmt: skip
    members["manifest.json"] = json.dumps(told).encode()
    members["../crontab"] = content


def one_bit(members) -> None:
    members[NAME] = members[NAME][:5000] + b"?" + members[NAME][5001:]


def garbage(members) -> None:
    """A database that is none, with the right checksum."""
    told = json.loads(members["manifest.json"])
    content = b"SQLite format 3\0" * 999
    told["files"][NAME] = {
        "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest(),
    }  # fmt: skip
    members["manifest.json"] = json.dumps(told).encode()
    members[NAME] = content


def other_database(members) -> None:
    """A whole database that is not Leaseboard's, with the right checksum."""
    with closing(sqlite3.connect(":memory:")) as made:
        made.execute("CREATE TABLE django_migrations (id, app, name)")
        made.commit()
        content = made.serialize()
    told = json.loads(members["manifest.json"])
    told["files"][NAME] = {
        "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest(),
    }  # fmt: skip
    members["manifest.json"] = json.dumps(told).encode()
    members[NAME] = content


def linked_to_itself(file) -> bytes:
    return rewritten(file, lambda head: (setattr(head, "type", tarfile.SYMTYPE), NAME))


def sparse(file) -> bytes:
    """3.2 GB of nothing in a few bytes."""

    def spoil(head: tarfile.TarInfo) -> tuple[None, str]:
        size = 3_200_000_000
        head.pax_headers = {
            "GNU.sparse.map": f"{size},0", "GNU.sparse.numblocks": "1",
            "GNU.sparse.size": str(size), "GNU.sparse.name": NAME,
        }  # fmt: skip
        return None, ""

    return rewritten(file, spoil)


def rewritten(file, spoil) -> bytes:
    """The backup with another head of its database, which then has no content."""
    made = BytesIO()
    with tarfile.open(file) as archive, tarfile.open(fileobj=made, mode="w") as target:
        for head in archive:
            if head.name == NAME:
                _, head.linkname = spoil(head)
                head.size = 0
                target.addfile(head)
            else:
                target.addfile(head, archive.extractfile(head))
    return made.getvalue()


BROKEN = {
    "cut off": (lambda file: file.read_bytes()[:-200_000], "no backup, or it is cut off"),
    "no tar": (lambda _: b"SQLite format 3\0" * 999, "no backup, or it is cut off"),
    "empty": (lambda _: b"", "no backup, or it is cut off"),
    "no manifest": (lambda file: repacked(file, lambda m: m.pop("manifest.json")), "without man"),
    "newer form": (lambda file: repacked(file, newer_form), r"newer Leaseboard \(9.0\)"),
    "newer schema": (lambda file: repacked(file, newer_schema), r"newer Leaseboard \(9.1, which"),
    "other names": (lambda file: repacked(file, other_names), "names other files"),
    "garbage": (lambda file: repacked(file, garbage), "no database that can be used"),
    "another database": (lambda file: repacked(file, other_database), "other migrations than"),
    "a link to itself": (linked_to_itself, "is no plain file"),
    "sparse": (sparse, "is no plain file"),
    "one bit": (lambda file: repacked(file, one_bit), "is damaged"),
}


def contents(folder):
    files = [path for path in folder.rglob("*") if path.suffix != ".lock"]
    return {path: path.read_bytes() for path in files}


def test_a_broken_or_newer_file_is_refused_and_replaces_nothing(data, tmp_path):
    file, broken = tmp_path / "backup.tar", tmp_path / "broken.tar"
    run("backup", file)
    connection.close()
    before = contents(data)
    for spoil, said in BROKEN.values():
        broken.write_bytes(spoil(file))
        with pytest.raises(CommandError, match=said) as refused:
            run("restore", broken)
        assert str(refused.value).endswith("Nothing was replaced.")
    assert contents(data) == before


def test_a_database_that_cannot_be_copied_leaves_the_last_backup(data, tmp_path):
    file = tmp_path / "backup.tar"
    run("backup", file)
    before = file.read_bytes()
    content = bytearray((data / NAME).read_bytes())
    with closing(sqlite3.connect(data / NAME)) as opened:
        page = "SELECT rootpage FROM sqlite_master WHERE name = 'leases_change'"
        start = (opened.execute(page).fetchone()[0] - 1) * 4096
    content[start : start + 4096] = b"\xff" * 4096
    connection.close()
    (data / NAME).write_bytes(content)
    with pytest.raises(CommandError, match="cannot be copied"):
        run("backup", file, "--overwrite")
    assert file.read_bytes() == before


def test_a_restore_that_is_cut_off_leaves_the_history_and_can_be_repeated(
    data, tmp_path, monkeypatch
):
    file = tmp_path / "backup.tar"
    run("backup", file)
    execute(data / NAME, NEWER)  # as an upgrade does that shall be undone
    (data / "secret_key").write_text("x" * 50)

    def full(path, folder, **_):
        if path.name == NAME:
            raise OSError(28, "No space left on device", str(path))
        return keep(path, folder, **_)

    keep = backups._keep
    with monkeypatch.context() as patched:
        patched.setattr(backups, "_keep", full)
        with pytest.raises(CommandError, match="No space left on device"):
            run("restore", file)
    assert newest_migration(data / NAME) == "9999_x"
    assert not list(data.glob("*.restoring"))
    run("restore", file)
    assert newest_migration(data / NAME) != "9999_x"
    assert (data / "secret_key").read_text() == "k" * 50


def newest_migration(database) -> str:
    with closing(sqlite3.connect(database)) as opened:
        return opened.execute("SELECT max(name) FROM django_migrations").fetchone()[0]


def test_postgresql_is_left_to_its_own_programs(data, settings, tmp_path):
    settings.SQLITE_FILE = None
    with pytest.raises(CommandError, match="pg_dump"):
        run("backup", tmp_path / "backup.tar")
    with pytest.raises(CommandError, match="pg_restore"):
        run("restore", tmp_path / "backup.tar")


@pytest.mark.parametrize("command", [["backup", "x.tar"], ["export_history"], ["migrate"]])
def test_a_newer_database_is_refused_by_each_command(data, command, tmp_path):
    execute(data / NAME, NEWER)
    with pytest.raises(NewerDatabase, match=r"newer version than this .* leases\.9999_x"):
        run(*command)


def test_serve_refuses_a_newer_database_in_one_sentence(data):
    execute(data / NAME, NEWER)
    done = manage(
        data, "serve", "--cluster", "c=url:http://127.0.0.1:1", "--port", str(free_port())
    )
    assert done.returncode == 1
    assert "is of a newer version than this Leaseboard" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize("kind", ["pipe", "device", "dangling link", "link to a file"])
@pytest.mark.parametrize("more", [[], ["--overwrite"]])
def test_a_backup_replaces_nothing_but_a_file(data, tmp_path, kind, more):
    place, there = tmp_path / "there", tmp_path / "file"
    there.write_text("x")
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "device":
        try:
            os.mknod(place, stat.S_IFCHR | 0o600, os.makedev(1, 3))
        except PermissionError:
            pytest.skip("only root makes a device")
    else:
        place.symlink_to(there if kind == "link to a file" else tmp_path / "nowhere")
    before = place.lstat()
    with pytest.raises(CommandError, match="name the backup itself"):
        run("backup", place, *more)
    assert (place.lstat().st_ino, place.lstat().st_mode) == (before.st_ino, before.st_mode)
    assert there.read_text() == "x"
    assert not (tmp_path / "nowhere").exists()
