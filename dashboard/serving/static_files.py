"""Static files whose names carry a hash of their content: browsers may keep them for ever."""

from __future__ import annotations

import shutil
from pathlib import Path

from django.contrib.staticfiles.storage import ManifestStaticFilesStorage
from django.core.management import call_command


class HashedStorage(ManifestStaticFilesStorage):
    """Keeps the plain names until `collectstatic` has run, so that tests need not run it."""

    def stored_name(self, name: str) -> str:
        return super().stored_name(name) if self.hashed_files else name


def collect(root: Path) -> None:
    """Write to `root` what is missing there. A machine that failed soon after an earlier start may
    have left empty files, which would pass for collected ones: then all are written anew."""
    files = (path for path in root.rglob("*") if path.is_file())
    if any(path.stat().st_size == 0 for path in files):
        shutil.rmtree(root)
    call_command("collectstatic", interactive=False, verbosity=0)
