"""Choose the threads for a request, so that slow requests delay only their own kind."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Any

from dashboard.access.sign_in.known_browsers import is_known_browser
from dashboard.access.sign_in.password_checks import (
    AT_ONCE,
    WAITING,
    WAITING_PER_ADDRESS,
    WAITING_PER_KNOWN_ADDRESS,
    checks_password,
)
from dashboard.serving.requests.request_threads import Threads

_HEALTH = frozenset({"/healthz", "/readyz", "/metrics"})
_OF_ONE_LEASE = re.compile(r"/c/[^/]+/leases/[^/]+/[^/]+/[a-z-]+/")


class ThreadPools:
    """All threads of one application."""

    def __init__(self) -> None:
        # Health answers while all pages wait.
        self.health = Threads("health", size=2, waiting=64, per_client=64)
        self.pages = Threads("pages", size=12, waiting=512, per_client=512)
        # These wait for a cluster's API, which may take its time.
        self.of_one_lease = Threads("one-lease", size=8, waiting=128, per_client=128)
        checks = partial(Threads, size=AT_ONCE, waiting=WAITING)
        self.sign_in = checks("sign-in", per_client=WAITING_PER_ADDRESS)
        self.known_sign_in = checks("known-sign-in", per_client=WAITING_PER_KNOWN_ADDRESS)

    def of(self, scope: Mapping[str, Any]) -> Threads:
        """The threads for a request."""
        path = scope["path"]
        if path in _HEALTH:
            return self.health
        if checks_password(scope):
            return self.known_sign_in if is_known_browser(scope["headers"]) else self.sign_in
        return self.of_one_lease if _OF_ONE_LEASE.fullmatch(path) else self.pages
