"""Static files whose names carry a hash of their content: browsers may keep them for ever."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import Any

from django.contrib.staticfiles.finders import get_finders
from django.contrib.staticfiles.storage import ManifestStaticFilesStorage
from django.core.management import call_command

STAMP = "sources.sha256"  # beside the collected files: what they were collected from


class HashedStorage(ManifestStaticFilesStorage):
    """Keeps the plain names until `collectstatic` has run, so that tests need not run it."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._urls: dict[tuple[str, bool], str] = {}

    def url(self, name: str | None, force: bool = False) -> str:
        """Compute each URL once: pages ask for the same ones a hundred times."""
        key = name or "", bool(self.hashed_files)
        if key not in self._urls:
            self._urls[key] = super().url(key[0], force)
        return self._urls[key]

    def stored_name(self, name: str) -> str:
        return super().stored_name(name) if self.hashed_files else name


def collect(root: Path) -> None:
    """Write the static files to `root`, unless an earlier start wrote the same ones.

    A machine that failed soon after an earlier start may have left empty files, which would pass
    for collected ones: then all are written anew.
    """
    stamp, sources = root / STAMP, _sources()
    files = (path for path in root.rglob("*") if path.is_file())
    if any(path.stat().st_size == 0 for path in files):
        shutil.rmtree(root)
    elif stamp.exists() and stamp.read_text() == sources:
        return
    call_command("collectstatic", interactive=False, verbosity=0)
    stamp.write_text(sources)


def _sources() -> str:
    """A digest that changes when a source file is added, removed, resized or written."""
    digest = hashlib.sha256()
    for finder in get_finders():
        for name, storage in finder.list(None):
            stat = Path(storage.path(name)).stat()
            digest.update(f"{name} {stat.st_size} {stat.st_mtime_ns}\n".encode())
    return digest.hexdigest()
