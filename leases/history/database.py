"""What SQLite and PostgreSQL do differently: text, locks, raw selects, many rows at once.

NUL becomes the symbol ␀; a ␀ or ␛ in the text gets a ␛ before it. Decoding restores the exact text.
Half of a surrogate pair, which no encoding can hold, becomes the replacement character for good.

SQLite releases Python's GIL for each statement: one per row would make the event loop and the
writer switch at every row.

SQLite allows only one writer anyway.

SQLite has no statistics about rare values, so its choice of an index is a guess. A statement that
names an index fails if the index cannot serve it.
"""

import asyncio
import codecs
import logging
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache, partial
from typing import Any, overload

import msgspec
from django.db import Error, InterfaceError, OperationalError, connection, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from leases.domain.lease import ObjectName
from leases.worker_threads import WorkerThreads

NUL_SYMBOL = "\N{SYMBOL FOR NULL}"
ESCAPE = "\N{SYMBOL FOR ESCAPE}"
_TO_ESCAPE = re.compile(f"[\0{NUL_SYMBOL}{ESCAPE}\ud800-\udfff]")
_ESCAPED = re.compile(f"{ESCAPE}([{NUL_SYMBOL}{ESCAPE}])|{NUL_SYMBOL}")


@overload
def to_stored(text: str) -> str: ...
@overload
def to_stored(text: str | None) -> str | None: ...
def to_stored(text: str | None) -> str | None:
    """The text without NUL."""
    if not text or not _TO_ESCAPE.search(text):
        return text
    return _TO_ESCAPE.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    if found[0] == "\0":
        return NUL_SYMBOL
    if "\ud800" <= found[0] <= "\udfff":
        return "\N{REPLACEMENT CHARACTER}"
    return ESCAPE + found[0]


@overload
def from_stored(text: str) -> str: ...
@overload
def from_stored(text: str | None) -> str | None: ...
def from_stored(text: str | None) -> str | None:
    """Undo `to_stored`."""
    if not text or text.isascii() or not _ESCAPED.search(text):
        return text
    return _ESCAPED.sub(lambda found: found[1] or "\0", text)


# Where the bytes of a text are no text: `to_stored` puts another character behind each ESCAPE.
_NO_TEXT = f"{ESCAPE}\N{REPLACEMENT CHARACTER}"
_HAS_NO_TEXT = re.compile(f"(?:[^{ESCAPE}]|{ESCAPE}[{NUL_SYMBOL}{ESCAPE}])*+{_NO_TEXT}", re.DOTALL)
codecs.register_error("leaseboard-no-text", lambda error: (_NO_TEXT, error.end))  # type: ignore[attr-defined]
_read_any = partial(str, encoding="utf-8", errors="leaseboard-no-text")


def read_any_text(*, connection: Any, **_signal: Any) -> None:
    """Receiver of connection_created. SQLite keeps any bytes as text, as a broken disk leaves them:
    by itself the driver then raises, and one row takes away all that are read with it.
    """
    if connection.vendor == "sqlite":
        connection.connection.text_factory = _read_any


def is_text(text: str) -> bool:
    """False for what was no text in the database."""
    return _NO_TEXT not in text or not _HAS_NO_TEXT.match(text)


def to_stored_json(value: Any) -> Any:
    """Encode all texts of a JSON value: a jsonb column cannot hold NUL."""
    if isinstance(value, str):
        return to_stored(value)
    if isinstance(value, dict):
        return {to_stored(name): to_stored_json(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_stored_json(item) for item in value]
    return value


def from_stored_json(value: Any) -> Any:
    """Undo `to_stored_json`."""
    if isinstance(value, str):
        return from_stored(value)
    if isinstance(value, dict):
        return {from_stored(name): from_stored_json(item) for name, item in value.items()}
    if isinstance(value, list):
        return [from_stored_json(item) for item in value]
    return value


ROWS = 50  # per statement; SQLite takes 32,766 values, older ones 999


def execute_many(sql: str, rows: Sequence[Sequence[Any]]) -> None:
    """Run a statement for each row."""
    if rows:
        with connection.cursor() as cursor:
            cursor.executemany(sql, rows)


def insert(head: str, rows: Sequence[Sequence[Any]], tail: str) -> None:
    """Run `head` VALUES rows `tail`. No two rows may conflict with each other."""
    with connection.cursor() as cursor:
        for start in range(0, len(rows), ROWS):
            some = rows[start : start + ROWS]
            row = f"({', '.join(['%s'] * len(some[0]))})"
            values = ", ".join([row] * len(some))
            cursor.execute(f"{head} VALUES {values} {tail}", [v for row in some for v in row])


_SPACE = 0x1EA5E  # separates our advisory locks from those of other programs


def take_turn(name: str) -> None:
    """Take the lock of this name until the open transaction ends."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s, hashtext(%s))", [_SPACE, name])


@contextmanager
def transaction_in_turn(*names: str) -> Iterator[None]:
    """Open a transaction and take the locks of these names in it, all in the same order."""
    try:
        with transaction.atomic():
            for name in sorted(names):
                take_turn(name)
            yield
    except Error:
        # Keep SQLite's open: on a full disk it could not be opened again.
        if not connection.is_usable():
            connection.close()
        raise


@contextmanager
def turn(name: str) -> Iterator[None]:
    """Hold the lock of this name during the block, over any number of transactions."""
    if connection.vendor != "postgresql":
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s, hashtext(%s))", [_SPACE, name])
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(%s, hashtext(%s))", [_SPACE, name])


Row = tuple[Any, ...]


def select(sql: str, parameters: Sequence[object] = ()) -> list[Row]:
    values = [_bound(value) for value in parameters]
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            connection.connection.text_factory = str  # twice as fast; for once it may fail
        try:
            return _fetched(cursor, sql, values)
        except OperationalError as error:
            if "decode" not in str(error):
                raise
        finally:
            read_any_text(connection=connection)
        return _fetched(cursor, sql, values)


def _fetched(cursor: Any, sql: str, values: list[Any]) -> list[Row]:
    cursor.execute(sql, values)
    rows: list[Row] = cursor.fetchall()
    return rows


KEYS_PER_SELECT = 200


def joined(
    wanted: Sequence[tuple[str, ...]],
    columns: str,
    table: str,
    key: Sequence[str],
    tail: str = "",
    parameters: Sequence[object] = (),
) -> Iterator[Row]:
    """Yield these columns of the rows whose `key` is wanted, each row's after its key.

    `tail`: SQL behind the comparison of the keys, with its parameters.
    """
    size = len(key)
    asked = ", ".join(f"asked.column{place}" for place in range(1, size + 1))
    same = " AND ".join(f"{name} = asked.column{place}" for place, name in enumerate(key, start=1))
    row = f"({', '.join(['%s'] * size)})"
    for start in range(0, len(wanted), KEYS_PER_SELECT):
        some = wanted[start : start + KEYS_PER_SELECT]
        # SQLite uses the whole key only in a join, and joins in this order.
        rows = select(
            f"SELECT {asked}, {columns} FROM (VALUES {', '.join([row] * len(some))}) AS asked "  # noqa: S608
            f"CROSS JOIN {table} WHERE {same} {tail}",
            [*(value for one in some for value in one), *parameters],
        )
        for found in rows:
            yield (found[:size], *found[size:])


def asked_table(*times: str) -> str:
    """Return a table of numbered Leases with these times, to be read from one parameter: a
    statement for each Lease would take most of a page's time.
    """
    source = "json_each(%s)"
    columns = [f"value ->> {place} AS {name}" for place, name in enumerate(_ASKED)]
    places = enumerate(times, start=len(_ASKED))
    if connection.vendor == "sqlite":
        columns += [f"value ->> {place} AS {name}" for place, name in places]
    else:
        source = "json_array_elements(CAST(%s AS json))"
        columns += [f"CAST(value ->> {place} AS timestamptz) AS {name}" for place, name in places]
    return f"(SELECT {', '.join(columns)} FROM {source}) AS asked"  # noqa: S608


_ASKED = ("number", "namespace", "name")


def as_asked(
    numbers: Iterable[int], leases: Sequence[tuple[ObjectName, *tuple[datetime, ...]]]
) -> str:
    """Encode the Leases of these numbers, each with its times, as what `asked_table` reads."""
    text = cache(lambda at: str(_bound(at)))
    rows = []
    for number in numbers:
        key, *times = leases[number]
        rows.append((number, key.namespace, key.name, *map(text, times)))
    return msgspec.json.encode(rows).decode()


def by_index(name: str) -> str:
    """Return the table of changes, to be read by this index."""
    hint = f" INDEXED BY {name}" if connection.vendor == "sqlite" else ""
    return f"leases_change{hint}"


def moment(value: str | datetime) -> datetime:
    """Convert a time from a raw statement: SQLite returns UTC without an offset."""
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    return value if value.tzinfo is not None else value.replace(tzinfo=UTC)


def _bound(value: object) -> Any:
    if isinstance(value, datetime):
        return connection.ops.adapt_datetimefield_value(value)
    return value


logger = logging.getLogger(__name__)

AWAY = (OperationalError, InterfaceError)  # what it raises that does not answer
LOOK_SECONDS = 1.0
ANSWER_SECONDS = 3.0
BELIEVED_SECONDS = (
    5.0  # a failure counts for so long; while the database is away each look renews it
)
SHORT_WAIT = 0.1  # seconds that a page waits for a connection meanwhile


class Reach:
    """Whether the database answers, so that no page waits for one that does not."""

    def __init__(self) -> None:
        self._failed: tuple[str, float] | None = None
        self._usual_wait = 0.0
        self._probe: BaseDatabaseWrapper | None = None
        self._closing: asyncio.Task[None] | None = None

    @property
    def error(self) -> str:
        """Why it does not answer; "" while it does. Any thread may ask."""
        failed = self._failed
        if failed is None or time.monotonic() - failed[1] > BELIEVED_SECONDS:
            return ""
        return failed[0]

    def failed(self, error: object) -> None:
        """A statement had no answer. Any thread may say so."""
        if not self.error:
            logger.warning("The database does not answer: %s", error)
        self._failed = (str(error) or type(error).__name__, time.monotonic())
        self._let_wait(SHORT_WAIT)

    def answered(self) -> None:
        if self._failed is not None:
            logger.info("The database answers again")
        self._failed = None
        self._let_wait(self._usual_wait)

    def _let_wait(self, seconds: float) -> None:
        """Let whoever wants a connection of the pool wait so long."""
        pool = getattr(connection, "pool", None)
        if pool is not None and seconds:
            self._usual_wait = self._usual_wait or pool.timeout
            pool.timeout = seconds

    async def run(self) -> None:
        """Look again and again, until cancelled. One that hangs has not answered either."""
        thread = WorkerThreads("database", 1)
        try:
            while True:
                look = asyncio.create_task(thread.run(self.look))
                while not (await asyncio.wait({look}, timeout=ANSWER_SECONDS))[0]:
                    self.failed(f"no answer within {ANSWER_SECONDS:g} s")
                await look
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            # After a look that goes on. Nothing waits for one that hangs.
            self._closing = asyncio.create_task(thread.run(self.close))

    def look(self) -> None:
        """Ask by a connection of its own: the pool has none to give while the database is away."""
        probe = self._probe
        if probe is None:
            probe = self._probe = connection.copy()
            probe.settings_dict["OPTIONS"].pop("pool", None)
            probe.inc_thread_sharing()
        try:
            with probe.cursor() as cursor:
                cursor.execute("SELECT 1")
        except Error as error:
            probe.close()
            self.failed(error)
        else:
            self.answered()

    def close(self) -> None:
        if self._probe is not None:
            self._probe.close()
            self._probe = None


reach = Reach()


def connect() -> None:
    """Open this thread's connection, unless the database is away."""
    if reach.error:
        return
    try:
        connection.ensure_connection()
    except AWAY as error:
        reach.failed(error)
