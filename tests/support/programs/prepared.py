"""A data directory as the first start of `serve` would make it: an empty history, static files.

python3 -m tests.support.programs.prepared    (LEASEBOARD_DATA says where)
"""

from __future__ import annotations

import atexit
import fcntl
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

DATABASE, STATIC = "leaseboard.sqlite3", "static"
SHARED = "TEST_PREPARED"  # names the folder to the workers of one run, which begin later


def share() -> None:
    """Make the folder of this run, unless this process is a worker of one."""
    if SHARED not in os.environ:
        folder = tempfile.mkdtemp(prefix="leaseboard-prepared-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        os.environ[SHARED] = folder


@cache
def prepared(make: Callable[[Path], None]) -> Path:
    """The one that all servers of this run begin with; the first process that asks makes it."""
    share()
    folder = Path(os.environ[SHARED])
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "done").exists():
            make(folder / "data")
            (folder / "done").touch()
    return folder / "data"


def begin_with(template: Path, data: Path) -> None:
    """Copy to a directory that is not there yet; the static files are shared."""
    data.mkdir(mode=0o700)
    shutil.copy2(template / DATABASE, data)
    (data / STATIC).symlink_to(template / STATIC)


def main() -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "dashboard.settings"
    import django

    django.setup()
    from django.conf import settings
    from django.core.management import call_command
    from django.db import connection

    from dashboard.serving.pages_port import collect

    call_command("migrate", verbosity=0)
    collect(settings.STATIC_ROOT)
    # Each server looks at each file as it starts. Half of them draw Django's own admin, which
    # no test looks at.
    shutil.rmtree(settings.STATIC_ROOT / "admin")
    manifest = json.loads((settings.STATIC_ROOT / "staticfiles.json").read_text())
    for plain in manifest["paths"]:  # pages ask for each by the name with its hash
        (settings.STATIC_ROOT / plain).unlink(missing_ok=True)
    connection.close()


if __name__ == "__main__":
    main()
