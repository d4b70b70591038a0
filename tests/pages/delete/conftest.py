"""As for creating: cluster a with a real embedded API, and an admin."""

from tests.pages.create.conftest import admin, cluster

__all__ = ["admin", "cluster"]
