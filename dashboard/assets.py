"""Static files whose names carry a hash of their content: browsers may keep them for ever."""

from __future__ import annotations

from django.contrib.staticfiles.storage import ManifestStaticFilesStorage


class HashedStorage(ManifestStaticFilesStorage):
    """Keeps the plain names until `collectstatic` has run, so that tests need not run it."""

    def stored_name(self, name: str) -> str:
        return super().stored_name(name) if self.hashed_files else name
