"""A disk that is full: the pages stay up and say so, and nothing is lost or doubled."""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.support.processes import Server
from tests.support.programs.broken_disk import survives


def no_longer_file(server: Server) -> Callable[[], Server]:
    """The process may write no file any further, as with a used-up quota: works for everybody."""
    pid, kind = server.process.pid, resource.RLIMIT_FSIZE
    _, most = resource.prlimit(pid, kind)
    resource.prlimit(pid, kind, (1, most))

    def mend() -> Server:
        resource.prlimit(pid, kind, (most, most))
        return server

    return mend


def no_room(server: Server) -> Callable[[], Server]:
    """The file system is full to the last byte."""
    filler = server.data / "filler"
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"x" * 4096)

    def mend() -> Server:
        filler.unlink()
        return server

    return mend


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A file system of its own; only root may have one, and not in every container."""
    folder.mkdir()
    options = ["-t", "tmpfs", "-o", "size=16m", "tmpfs", str(folder)]
    if os.geteuid() or subprocess.run(["mount", *options], check=False).returncode:
        pytest.skip("this user cannot mount a file system")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_process_that_may_write_no_further(tmp_path):
    survives(tmp_path, tmp_path / "data", no_longer_file)


def test_a_file_system_without_room(tmp_path):
    with small_disk(tmp_path / "disk") as disk:
        survives(tmp_path, disk, no_room)
