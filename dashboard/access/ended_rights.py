"""Ends what is open once its right has ended, here or at another replica.

Every open socket and every long answer is registered with its right. All rights are looked at again
every two seconds, in a few queries however many sockets are open, because another replica or a
command may have ended one; and at once when this process hears of a change (`right_changes`).

While the database cannot be asked, what is open stays open, and the pages say so: a wall is needed
most when something is down.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from django.contrib.auth.models import Group, User
from django.contrib.sessions.backends.base import SessionBase
from django.contrib.sessions.models import Session
from django.db import Error, connection, transaction
from django.db.models.signals import ModelSignal, m2m_changed, post_delete, post_save
from msgspec.structs import replace

from dashboard import clock
from dashboard.access.known_rights import KnownRights, Right, UserRight
from dashboard.access.rights import RightsReader
from leases.models import ApiToken, WallLink

UID = "dashboard.access.ended_rights"
# Django writes this at each sign-in; it ends no right.
HARMLESS = frozenset({"last_login"})

SIGNALS: tuple[tuple[ModelSignal, Any], ...] = (
    (post_delete, Session),
    (post_save, User),
    (post_delete, User),
    (post_delete, Group),
    (post_save, WallLink),
    (post_delete, WallLink),
    (post_save, ApiToken),
    (post_delete, ApiToken),
    (m2m_changed, User.groups.through),
    (m2m_changed, User.user_permissions.through),
    (m2m_changed, Group.permissions.through),
)


def connect(notify: Callable[[], None]) -> None:
    """Call `notify` after each such change is committed."""
    for signal, sender in SIGNALS:
        signal.connect(partial(_changed, notify), sender=sender, weak=False, dispatch_uid=UID)


def disconnect() -> None:
    for signal, sender in SIGNALS:
        signal.disconnect(sender=sender, dispatch_uid=UID)


def _changed(notify: Callable[[], None], *, update_fields: Any = None, **_signal: Any) -> None:
    if update_fields is None or not HARMLESS.issuperset(update_fields):
        transaction.on_commit(notify, robust=True)


logger = logging.getLogger(__name__)

CHECK_SECONDS = 2.0
MIN_SPACING = 0.25  # seconds between two checks, however many changes there are
LATE_SECONDS = 10.0  # after so long without an answer of the database the pages say so
PROBLEM = (
    "The database does not say who may still look. Pages that are open stay open until it answers."
)

FindEnded = Callable[..., dict[Right, str]]


class Grant:
    """One thing that is open. `end` is called once with the reason, on the event loop."""

    __slots__ = ("end", "right")

    def __init__(self, right: Right, end: Callable[[str], None]) -> None:
        self.right = right
        self.end = end


class RightsWatch:
    """Everything that is open in this process, by its right."""

    def __init__(self, find: FindEnded | None = None, *, known: KnownRights | None = None) -> None:
        """`known` are rights to read on while the database does not answer; they end here too."""
        self._find = find or RightsReader().find_ended
        self._known = known or KnownRights()
        self._open: dict[Right, set[Grant]] = {}
        self._renewing: set[str] = set()  # keys of sessions that change their own password
        self._wake = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="rights")
        self._answered_at: float | None = None  # None: nothing had to be asked
        self._failing = False
        self.checks = 0  # since the start

    def add(self, right: Right, end: Callable[[str], None]) -> Grant:
        """Register what was opened just now by a right that was checked just now."""
        grant = Grant(right, end)
        self._open.setdefault(right, set()).add(grant)
        return grant

    def remove(self, grant: Grant) -> None:
        """It was closed."""
        grants = self._open.get(grant.right)
        if grants is not None:
            grants.discard(grant)
            if not grants:
                del self._open[grant.right]

    @property
    def rights(self) -> Collection[Right]:
        """By what rights something is open. Any thread may ask."""
        return tuple(self._open)

    @contextmanager
    def renewing(self, session: SessionBase) -> Iterator[None]:
        """Keep open what this session opened, while it gets another key in any thread."""
        old = session.session_key or ""
        self._renewing.add(old)
        try:
            yield
        finally:
            if self._loop is None or self._loop.is_closed():
                self._renewing.discard(old)
            else:
                self._loop.call_soon_threadsafe(self._renewed, old, session.session_key)

    def _renewed(self, old: str, new: str | None) -> None:
        self._renewing.discard(old)
        for right in self.rights:
            if isinstance(right, UserRight) and right.session_key == old != new:
                moved = replace(right, session_key=new)
                for grant in self._open.pop(right):
                    grant.right = moved
                    self._open.setdefault(moved, set()).add(grant)

    @property
    def problem(self) -> str | None:
        """What the pages say while rights cannot be checked."""
        if self._failing:
            return PROBLEM
        late = self._answered_at is not None and time.monotonic() - self._answered_at > LATE_SECONDS
        return PROBLEM if late else None

    def look_now(self) -> None:
        """A right may have ended. Any thread may call this."""
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._wake.set)

    async def run(self) -> None:
        """Check again and again, until cancelled."""
        self._loop = asyncio.get_running_loop()
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(CHECK_SECONDS):
                    await self._wake.wait()
            self._wake.clear()
            await self.check()
            await asyncio.sleep(MIN_SPACING)

    def close(self) -> None:
        """Let the thread that asks the database end."""
        self._thread.shutdown(wait=False)

    async def check(self) -> None:
        """End what is open by a right that has ended."""
        in_use = self.rights
        rights = self._known.rights.union(in_use)
        if not rights:
            self._answered_at, self._failing = None, False
            return
        self._answered_at = self._answered_at or time.monotonic()
        try:
            ended = await asyncio.get_running_loop().run_in_executor(
                self._thread, self._ask, rights
            )
        except Error as error:
            if not self._failing:
                logger.warning("%s It says: %s", PROBLEM, error)
            self._failing = True
            return
        if self._failing:
            logger.info("The database says again who may look.")
        self._answered_at, self._failing = time.monotonic(), False
        self.checks += 1
        self._known.confirm(in_use, ended)
        for right, reason in ended.items():
            if isinstance(right, UserRight) and right.session_key in self._renewing:
                continue
            for grant in self._open.pop(right, set()):
                self._end(grant, reason)

    def _ask(self, rights: Collection[Right]) -> dict[Right, str]:
        try:
            return self._find(rights, now=clock.now())
        finally:
            connection.close()  # a connection that failed would fail again

    def _end(self, grant: Grant, reason: str) -> None:
        try:
            grant.end(reason)
        except Exception:
            logger.exception("What is open by an ended right could not be closed")
