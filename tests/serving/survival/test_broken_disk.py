"""A disk that is full, or turns read-only under a running server: the pages stay up and say so, and
nothing is lost or doubled.
"""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

import pytest

from tests.support.api_client import LeaseApi
from tests.support.processes import Server, ended, get, serving, wait_for
from tests.support.programs.lease_apis import changes_in, history, lease_api
from tests.support.signing_in import signed_in

PAGES = ("", "leases/", "leases/default/one/", "timeline/", "holders/", "history/")
SAID = "History cannot be written"


Break = Callable[[Server], Callable[[], Server]]  # breaks; what it gives mends: the server to ask


def survives(tmp_path: Path, data: Path, broken: Break) -> None:
    with lease_api(tmp_path / "api") as (_, url):
        api = LeaseApi(tmp_path / "api" / "kubeconfig")
        source = url.replace("://", f"://{api.token}@")
        with serving(data, "--no-demo", "--cluster", f"b=url:{source}") as server:
            server.wait_synced()
            browser = signed_in(server)

            def page(path: str) -> str:
                with browser.open(f"{server.url}/c/b/{path}", timeout=60) as answer:
                    text: str = answer.read().decode()
                    return text

            api.create("one", holder="h-0")
            wait_for(lambda: len(changes_in(data, "b")) == 1, what="the first change in history")
            mend = broken(server)
            takes = count(1)

            def all_say_so() -> bool:
                """A file that is there already may take a little more: not for long."""
                number = next(takes)
                api.take("one", holder=f"h-{number}", transitions=number)
                return all(SAID in page(path) for path in PAGES)

            wait_for(all_say_so, what="every page to say that history is not written")
            last = next(takes) - 1
            assert get(f"{server.url}/healthz")[0] == 200
            wait_for(lambda: f'title="h-{last}"' in page("leases/"), what="the page to be live")
            with ended(mend()) as mended:
                wait_for(lambda: SAID not in page(""), what="the page to be well again")
                assert mended.interrupt() == 0
        reported = [(change["change"], change["holder"]) for change in history(data, "b")]
    taken = [("replaced", f"h-{number}") for number in range(1, last + 1)]
    assert reported == [("created", "h-0"), *taken]


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


def done(*command: str) -> bool:
    """Whether the command ran and was content."""
    try:
        return subprocess.run(command, check=False, capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


def remounted(image: Path) -> Callable[[Server], Callable[[], Server]]:
    """The kernel ends all writing, as where it meets an error in ext4: a busy file system refuses
    to be mounted read-only. It must be unmounted before it is well again, which no process that
    uses it lives to see. What was not on disk yet is lost, as in a power cut: of the files of a
    first start only the database is sure to be."""

    def broken(server: Server) -> Callable[[], Server]:
        assert done(
            "sync", *(str(server.data / f"leaseboard.sqlite3{tail}") for tail in ("", "-wal"))
        )
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


def test_a_process_that_may_write_no_further(tmp_path):
    survives(tmp_path, tmp_path / "data", no_longer_file)


@pytest.mark.long
def test_a_file_system_without_room(tmp_path):
    with small_disk(tmp_path / "disk") as disk:
        survives(tmp_path, disk, no_room)


@pytest.mark.long
def test_a_file_system_that_the_kernel_makes_read_only(tmp_path):
    image, folder = tmp_path / "image", tmp_path / "disk"
    with ext4(folder, image):
        survives(tmp_path, folder, remounted(image))
