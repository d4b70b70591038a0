"""Choose the threads for a request, so that slow requests delay only their own kind."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from dashboard.access.sign_in.known_browsers import is_known_browser
from dashboard.serving.requests.request_threads import Threads

_HEALTH = frozenset({"/healthz", "/readyz", "/metrics"})
SIGN_IN = frozenset({"/sign-in/", "/admin/login/"})
_OF_ONE_LEASE = re.compile(r"/c/[^/]+/leases/[^/]+/[^/]+/[a-z-]+/")


class ThreadChoice:
    """All threads of one application."""

    def __init__(self) -> None:
        # Health answers while all pages wait.
        self.health = Threads("health", size=2, waiting=64, per_client=64)
        self.pages = Threads("pages", size=12, waiting=512, per_client=512)
        # These wait for a cluster's API, which may take its time.
        self.of_one_lease = Threads("one-lease", size=8, waiting=128, per_client=128)
        # A password check takes a core for a third of a second: one at a time, and a flood from
        # one address leaves room for others. Browsers that somebody has signed in with have a
        # thread of their own, which strangers cannot fill.
        self.sign_in = Threads("sign-in", size=1, waiting=8, per_client=2)
        self.known_sign_in = Threads("known-sign-in", size=1, waiting=8, per_client=4)

    def of(self, scope: Mapping[str, Any]) -> Threads:
        """The threads for a request."""
        path = scope["path"]
        if path in _HEALTH:
            return self.health
        if is_sign_in(scope):
            return self.known_sign_in if is_known_browser(scope["headers"]) else self.sign_in
        return self.of_one_lease if _OF_ONE_LEASE.fullmatch(path) else self.pages


def is_sign_in(scope: Mapping[str, Any]) -> bool:
    """Whether the request carries a password to check."""
    return scope["method"] == "POST" and scope["path"] in SIGN_IN
