"""Set aside values that the database will never store.

A refused value, such as a number out of range, fails at every retry and must not block all others.
It is stored as a RefusedRow with its whole content. If the database is down, locked, full or
read-only, nothing is set aside: everything waits.
"""

import hashlib
import json
import logging
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, TypeVar

import msgspec
from django.db import DataError, Error, transaction
from django.utils import timezone

from leases.history.database import to_stored
from leases.models import RefusedRow

logger = logging.getLogger(__name__)

T = TypeVar("T")

SHOWN_FOR = timedelta(days=1)  # how long a refusal needs attention
MAX_SHOWN = 200  # refusals of one cluster kept in memory
MAX_KEPT = 10_000  # rows kept in all, the newest
MAX_SENTENCE = 500
# SQLSTATE classes: data exception, integrity violation, program limit (too long for an index).
_OF_THE_VALUE = frozenset({"22", "23", "54"})
_SQLITE_OF_THE_VALUE = ("SQLITE_TOOBIG", "SQLITE_CONSTRAINT", "SQLITE_MISMATCH", "SQLITE_RANGE")


class What(StrEnum):
    CHANGE = "change"
    STATE = "state"  # the checkpointed state of a Lease
    SPAN = "span"  # a watched time
    PROGRESS = "progress"  # how far the watch is stored
    INCIDENT = "incident"
    CAUSE = "cause"  # of a change


class RefusedValue(msgspec.Struct, frozen=True, kw_only=True):
    """One value that was set aside. `same` identifies it when it is refused again."""

    at: datetime
    cluster: str
    what: What
    namespace: str = ""
    name: str = ""
    error: str
    content: str = ""
    same: str = ""


class RecentRefusals:
    """Those of all clusters, kept in memory for the pages.

    Only the event loop writes; any thread may read.
    """

    def __init__(self) -> None:
        self.total = 0  # since the start
        self._lately: dict[str, tuple[RefusedValue, ...]] = {}  # replaced as a whole; oldest first

    def fill(self, cluster: str, oldest_first: Iterable[RefusedValue]) -> None:
        """Load what earlier runs set aside."""
        self._lately[cluster] = tuple(oldest_first)

    def add(self, refused: Sequence[RefusedValue]) -> None:
        self.total += len(refused)
        for one in refused:
            known = self._lately.get(one.cluster, ())
            brief = msgspec.structs.replace(one, content="")
            self._lately[one.cluster] = (*known, brief)[-MAX_SHOWN:]

    def lately(self, cluster: str, now: datetime) -> list[RefusedValue]:
        """Return the refusals that still need attention, oldest first."""
        return [one for one in self._lately.get(cluster, ()) if one.at > now - SHOWN_FOR]


def is_of_the_value(error: Exception) -> bool:
    """Whether the database refuses this very value, at every retry."""
    if not isinstance(error, Error):
        return not isinstance(error, OSError | MemoryError)
    cause = error.__cause__
    if state := getattr(cause, "sqlstate", None):
        return state[:2] in _OF_THE_VALUE
    if name := getattr(cause, "sqlite_errorname", None):
        return bool(name.startswith(_SQLITE_OF_THE_VALUE))
    return isinstance(error, DataError)  # psycopg itself refuses a NUL


def write_all_but_refused(
    items: Sequence[T],
    write: Callable[[Sequence[T]], None],
    refuse: Callable[[T, Exception], None],
) -> None:
    """Write the items in order; halve a failing batch until the refused ones are found.

    Runs in the caller's transaction. Raises errors of the database itself.
    """
    if not items:
        return
    try:
        with transaction.atomic():
            write(items)
    except Exception as error:
        if not is_of_the_value(error):
            raise
        if len(items) == 1:
            refuse(items[0], error)
            return
        middle = len(items) // 2
        write_all_but_refused(items[:middle], write, refuse)
        write_all_but_refused(items[middle:], write, refuse)


def refusal(
    what: What, item: Any, error: Exception, *, cluster: str, same: str, key: Any = None
) -> RefusedValue:
    """Describe `item` so that the database can store the description."""
    return RefusedValue(
        at=timezone.now(),
        cluster=cluster,
        what=what,
        namespace=_safe(key.namespace) if key is not None else "",
        name=_safe(key.name) if key is not None else "",
        error=_sentence(error),
        content=_content(item),
        same=same,
    )


def set_aside(refused: Sequence[RefusedValue]) -> list[RefusedValue]:
    """Store refusals once each, and return the new ones. Runs in the caller's transaction."""
    new = []
    for one in refused:
        identity = json.dumps([one.what, one.cluster, one.namespace, one.name, one.same])
        digest = hashlib.sha256(identity.encode()).hexdigest()
        if not RefusedRow.objects.filter(digest=digest).exists():
            fields = msgspec.structs.asdict(one) | {"what": one.what.value, "digest": digest}
            del fields["same"]
            RefusedRow.objects.create(**fields)
            new.append(one)
    return new


def log(refused: Sequence[RefusedValue]) -> None:
    for one in refused:
        logger.error(
            "%s: the database refuses a %s of %r, which is set aside: %s",
            one.cluster, one.what.value, f"{one.namespace}/{one.name}", one.error,
        )  # fmt: skip


def recently_refused(cluster: str, now: datetime) -> list[RefusedValue]:
    """Return recent refusals, oldest first, without their content."""
    rows = RefusedRow.objects.filter(cluster=cluster, at__gte=now - SHOWN_FOR).order_by("-at")
    fields = ("at", "cluster", "what", "namespace", "name", "error")
    found = [msgspec.convert(row, RefusedValue) for row in rows.values(*fields)[:MAX_SHOWN]]
    return found[::-1]


def forget_refused(before: datetime) -> int:
    """Delete refusals from before then, and all but the newest MAX_KEPT."""
    gone, _ = RefusedRow.objects.filter(at__lt=before).delete()
    beyond = RefusedRow.objects.order_by("-id").values_list("id", flat=True)[
        MAX_KEPT : MAX_KEPT + 1
    ]
    for last in list(beyond):
        gone += RefusedRow.objects.filter(id__lte=last).delete()[0]
    return gone


def _sentence(error: Exception) -> str:
    text = _safe(str(error).strip().partition("\n")[0])[:MAX_SENTENCE]
    return text if isinstance(error, Error) else f"{type(error).__name__}: {text}"


def _content(item: Any) -> str:
    """Encode the item as ASCII JSON; a NUL is spelled \\u0000."""
    try:
        return json.dumps(msgspec.to_builtins(item), default=str)
    except (TypeError, ValueError, RecursionError):
        return ascii(item)


def _safe(text: str) -> str:
    return to_stored(text).encode("utf-8", "backslashreplace").decode()
