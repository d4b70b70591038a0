"""A disk that turns read-only under a running server: the pages stay up and say so, and nothing
is lost or doubled.

A busy file system refuses to be mounted read-only, so it is done as it happens: the kernel meets an
error in ext4 and allows no more writing, or the files are made immutable.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.processes import Server
from tests.support.programs.broken_disk import survives


def done(*command: str) -> bool:
    """Whether the command ran and was content."""
    try:
        return subprocess.run(command, check=False, capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


def database(server: Server) -> list[str]:
    """Its files, but for the -shm: SQLite maps that, and only a signal could refuse it."""
    return [str(server.data / f"leaseboard.sqlite3{tail}") for tail in ("", "-wal")]


def immutable(server: Server) -> Callable[[], Server]:
    """No file of the database may change any more, not even one that is open."""
    names = [str(server.data), *database(server)]
    assert done("chattr", "+i", *names)

    def mend() -> Server:
        assert done("chattr", "-i", *names)
        return server

    return mend


def remounted(image: Path) -> Callable[[Server], Callable[[], Server]]:
    """The kernel ends all writing to the file system. It must be unmounted before it is well again,
    which no process that uses it lives to see. What was not on disk yet is lost, as in a power cut:
    of the files of a first start only the database is sure to be."""

    def broken(server: Server) -> Callable[[], Server]:
        assert done("sync", *database(server))
        assert done("mount", "-o", "remount,abort", str(server.data))

        def mend() -> Server:
            assert server.interrupt() == 0
            subprocess.run(["umount", str(server.data)], check=True)
            subprocess.run(["mount", "-o", "loop", str(image), str(server.data)], check=True)
            return server.again()

        return mend

    return broken


@contextmanager
def ext4(folder: Path, image: Path) -> Iterator[None]:
    """A small file system in a file; only root may mount it, and not in every container."""
    folder.mkdir()
    with image.open("wb") as file:
        file.truncate(64 << 20)
    mount = ("mount", "-o", "loop,errors=remount-ro", str(image), str(folder))
    if os.geteuid() or not done("mkfs.ext4", "-q", str(image)) or not done(*mount):
        pytest.skip("this user cannot mount an ext4 file system here")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_files_that_nobody_may_change(tmp_path):
    probe = tmp_path / "probe"
    probe.touch()
    if not (done("chattr", "+i", str(probe)) and done("chattr", "-i", str(probe))):
        pytest.skip("this user cannot make files immutable here")
    try:
        survives(tmp_path, tmp_path / "data", immutable)
    finally:
        done("chattr", "-R", "-i", str(tmp_path / "data"))  # or nobody could clear it away


def test_a_file_system_that_the_kernel_makes_read_only(tmp_path):
    image, folder = tmp_path / "image", tmp_path / "disk"
    with ext4(folder, image):
        survives(tmp_path, folder, remounted(image))
