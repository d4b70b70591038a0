"""The paths of every page."""

from __future__ import annotations

from tests.support.board import KEY

PATHS = (
    "/",
    "/?q=nonsense",
    "/?limit=none",
    "/c/a/",
    "/c/a/leases/",
    f"/c/a/leases/{KEY}/",
    f"/c/a/leases/{KEY}/asked/",
    "/c/a/holders/",
    "/c/a/timeline/",
    "/c/a/timeline/?view=table",
    "/c/a/timeline/?range=never",
    "/c/a/history/",
    "/c/a/history/stretch/",
    "/c/a/incidents/",
    "/c/a/incidents/near-misses/",
    "/c/a/incidents/first/",
    "/c/a/reliability/",
    "/c/a/wall/",
    "/c/a/search/?q=s",
    "/search/?q=s",
    "/components/",
    "/audit/",
    "/wall-links/",
    "/wall/",
    "/people/",
    "/security-log/",
    "/tokens/",
    "/api/",
    "/badges/",
    "/notifications/",
    "/notifications/receivers/new/?sort=email",
    "/notifications/log/",
    "/notifications/quiet/",
    "/c/a/leases/?phase=nonsense",
    "/c/a/leases/?at=2026-11-20T12:00:00Z",
    "/c/a/leases/no/such/",
)
