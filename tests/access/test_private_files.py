"""What lies in the data directory is for its owner alone, whichever command made it."""

from __future__ import annotations

import os
import stat

import pytest

from dashboard.serving.data_directory import keep_private
from tests.support.private_files import everybody_may_read, open_to_others
from tests.support.processes import (
    environment,
    fill,
    free_port,
    get,
    manage,
    start_python,
    wait_for,
)

COMMANDS = {
    "export_history": ("export_history",),
    "lease_tokens": ("lease_tokens", "create", "--name", "ci", "--role", "read"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_makes_private_files(tmp_path, command):
    data = tmp_path / "deep" / "data"
    with everybody_may_read():
        if command == "export_history":
            data.parent.mkdir()
            fill(data)
            (data / "static").unlink()  # a link to what all tests share
        done = manage(data, *COMMANDS[command])
    assert done.returncode == 0, done.stderr
    assert data.is_dir()
    assert open_to_others(data) == []


def test_lease_api_makes_private_files_also_while_it_runs(tmp_path):
    data, port = tmp_path / "data", free_port()
    with everybody_may_read():
        command = ("manage.py", "lease_api", "--port", str(port))
        with (tmp_path / "log").open("wb") as log:
            process = start_python(*command, env=environment(data), stdout=log, stderr=log)
    try:
        wait_for(lambda: get(f"http://127.0.0.1:{port}/livez")[0] == 200, what="the Lease API")
        assert open_to_others(data) == []
    finally:
        process.terminate()
        process.wait(timeout=60)


def test_files_that_an_earlier_version_left_open_are_closed(tmp_path):
    data, elsewhere = tmp_path / "data", tmp_path / "elsewhere.sqlite3"
    (data / "static" / "css").mkdir(parents=True)
    for path in (data / "secret_key", data / "kubeconfig", data / "static/css/a.css", elsewhere):
        path.write_text("x" * 60)
        path.chmod(0o644)
    data.chmod(0o755)
    outside = tmp_path / "outside"
    outside.write_text("not ours to change")
    outside.chmod(0o644)
    (data / "link").symlink_to(outside)
    done = manage(data, "check", LEASEBOARD_DATABASE_URL=f"sqlite:///{elsewhere}")
    assert done.returncode == 0, done.stderr
    (data / "link").unlink()
    assert open_to_others(data) == []
    assert elsewhere.stat().st_mode & 0o077 == 0
    assert outside.stat().st_mode & 0o777 == 0o644


def test_a_shared_directory_like_tmp_keeps_its_mode(tmp_path):
    data = tmp_path / "tmp"
    data.mkdir()
    data.chmod(0o1777)
    assert manage(data, "check").returncode == 0
    assert data.stat().st_mode & 0o7777 == 0o1777
    assert (data / "secret_key").stat().st_mode & 0o777 == 0o600


def test_only_files_and_directories_are_closed_and_only_for_others(tmp_path):
    with everybody_may_read():
        open_file, own, folder = tmp_path / "open", tmp_path / "own", tmp_path / "static" / "css"
        folder.mkdir(parents=True, mode=0o755)
        for path, mode in ((open_file, 0o664), (own, 0o500)):
            path.touch()
            path.chmod(mode)
        (tmp_path / "link").symlink_to("/etc/hostname")
        keep_private(tmp_path, tmp_path / "elsewhere.sqlite3")
        modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (open_file, own, folder)}
    assert modes == {open_file: 0o600, own: 0o500, folder: 0o700}


def test_a_database_elsewhere_is_closed_with_the_files_beside_it(tmp_path):
    data, elsewhere = tmp_path / "data", tmp_path / "elsewhere"
    data.mkdir()
    elsewhere.mkdir()
    names = ("h.sqlite3", "h.sqlite3-wal", "h.sqlite3-shm", "h.sqlite3-journal", "h.txt")
    with everybody_may_read():
        for name in names:
            (elsewhere / name).touch(0o644)
        keep_private(data, elsewhere / "h.sqlite3")
        keep_private(data / "missing", None)
        modes = [stat.S_IMODE((elsewhere / name).stat().st_mode) for name in names]
    assert modes == [0o600, 0o600, 0o600, 0o600, 0o644]


def test_a_pipe_in_the_data_directory_stays_as_it_is(tmp_path):
    with everybody_may_read():
        os.mkfifo(tmp_path / "pipe", 0o644)
        keep_private(tmp_path, None)
        mode = (tmp_path / "pipe").stat().st_mode
    assert stat.S_IMODE(mode) == 0o644
