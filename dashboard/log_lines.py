"""Log lines: as JSON, with the id of the request, without secrets, limited; and slow statements.

They are cut out of every log record before it is written. Django logs the path of a refused
request, uvicorn logs paths with their queries, and a library may repeat what it was given, so
cutting at each caller would miss some.
"""

import logging
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from threading import Lock
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

import msgspec
from django.conf import settings
from django.db.backends.base.base import BaseDatabaseWrapper

HIDDEN = "[hidden]"
# /sign-in/TOKEN/ but not /sign-in/link/; /badge/TOKEN.svg; ?key=TOKEN; an API token. Quotes,
# blanks and the query end a token.
_TOKEN = re.compile(
    r"(/sign-in(?:/|%2f)+(?!link/)|/badge(?:/|%2f)+|[?&]key=|lbt_)[^/?&#\s'\"]+", re.IGNORECASE
)
MAX_REFUSAL = 300  # characters of a refused request that the log keeps
MAX_TEXT = 1000  # characters of an argument that a logger of another program repeats
MIN_SECRET = 4  # a shorter one is no secret, and hiding it would garble every text
_PASSWORD_OPTION = re.compile("pass|secret|token", re.IGNORECASE)
_secrets: set[str] = set()  # of the settings; filled before anything is logged


def hide(*secrets: str) -> list[str]:
    """Cut these, and how a URL spells them, out of all that `redact` sees from now on. Returns
    those that were not hidden before.
    """
    fresh = [one for one in secrets if len(one) >= MIN_SECRET and one not in _secrets]
    for secret in fresh:
        _secrets.update((secret, quote(secret), quote(secret, safe="")))
    return fresh


def forget(*secrets: str) -> None:
    """These are in use no longer."""
    for secret in secrets:
        _secrets.difference_update((secret, quote(secret), quote(secret, safe="")))


def redact(text: str) -> str:
    """The text without the tokens of sign-in links and wall links, and without hidden secrets."""
    for secret in sorted(_secrets, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return _TOKEN.sub(rf"\g<1>{HIDDEN}", text)


def without_credentials(text: str) -> str:
    """A setting's text without what stands before the last @ of a URL, and without its query.

    The text may be malformed: a password may hold any character.
    """
    before, at, after = text.rpartition("@")
    if at:
        head, slashes, _ = before.partition("//")
        text = f"{head if slashes else ''}{slashes}{HIDDEN}@{after}"
    shown, question, _ = text.partition("?")
    return f"{shown}?{HIDDEN}" if question else shown


def passwords_in(url: str) -> list[str]:
    """The secrets of a database URL that can be read."""
    parts = urlsplit(url)
    given = [parts.password or ""]
    given += [value for name, value in parse_qsl(parts.query) if _PASSWORD_OPTION.search(name)]
    return [*given, *map(unquote, given)]


# The cluster that the running task serves, "" for none. dashboard.serving.tasks.supervisor sets it.
cluster_at_work: ContextVar[str] = ContextVar("cluster", default="")


class RedactingFormatter(logging.Formatter):
    """Cuts tokens out of the whole line, its traceback included, and names the cluster."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        named = f"{cluster_at_work.get()}: "
        if named != ": " and not record.message.startswith(named):
            record.message = named + record.message
        return super().formatMessage(record)

    def format(self, record: logging.LogRecord) -> str:
        return redact(super().format(record))


class SentenceFilter(logging.Filter):
    """A request that Django refuses, such as one for a host that is not ours, is one short line:
    where in Django it was refused helps nobody, and anybody may send a thousand of them.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        if record.name.startswith("django.security."):
            record.msg, record.args = record.getMessage()[:MAX_REFUSAL], ()
            record.exc_info = record.exc_text = None
        return True


class RedactingFilter(logging.Filter):
    """The same for loggers whose handlers are another program's, such as uvicorn's own."""

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.msg, str):
            record.msg = redact(record.msg)
        if isinstance(record.args, tuple):
            record.args = tuple(
                _cut(redact(one)) if isinstance(one, str) else one for one in record.args
            )
        return True


def _cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}…"


def redact_loggers(*names: str) -> None:
    """Let these loggers cut tokens out of what they log."""
    for name in names:
        logging.getLogger(name).addFilter(RedactingFilter())


HEADER = b"x-request-id"
_SANE = re.compile(rb"[A-Za-z0-9._-]{1,64}")
Send = Callable[[dict[str, Any]], Awaitable[None]]

current: ContextVar[str] = ContextVar("request_id", default="")


def answer_with_id(scope: Mapping[str, Any], send: Send) -> Send:
    """Take the proxy's id or make one, keep it for this context, and put it on the answer."""
    given = next((value for name, value in scope.get("headers", ()) if name == HEADER), b"")
    value = given if _SANE.fullmatch(given) else secrets.token_hex(8).encode()
    current.set(value.decode())

    async def sending(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), (HEADER, value)]}
        await send(message)

    return sending


class JsonFormatter(logging.Formatter):
    """`time`, `level`, `logger`, `message`; where there is one `cluster`, `request_id`, `error`."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": redact(record.getMessage()),
        }
        if cluster_at_work.get():
            line["cluster"] = cluster_at_work.get()
        if current.get():
            line["request_id"] = current.get()
        if record.exc_info:
            line["error"] = redact(self.formatException(record.exc_info))
        return msgspec.json.encode(line).decode()


logger = logging.getLogger(__name__)

MAX_STATEMENT = 500  # characters of it in a line
_VALUE = re.compile(r"'(?:[^']|'')*'|(?<![\w$])\d+(?:\.\d+)?\b")


def time_statements(connection: BaseDatabaseWrapper, **_signal: Any) -> None:
    """Django calls this for each connection that it opens, also when it opens one again."""
    if _timed not in connection.execute_wrappers:
        connection.execute_wrappers.append(_timed)


def _timed(
    execute: Callable[..., Any], sql: str, params: Any, many: bool, context: dict[str, Any]
) -> Any:
    statement = _Statement(sql)
    if context["connection"].vendor == "sqlite":  # finds most of the rows while they are fetched
        cursor = context["cursor"]
        cursor.fetchall = statement.timing(cursor.fetchall)
        cursor.fetchmany = statement.timing(cursor.fetchmany)
    return statement.timing(execute)(sql, params, many, context)


class _Statement:
    """One statement, and how long its calls took together."""

    def __init__(self, sql: str) -> None:
        self._sql = sql
        self._took = 0.0  # milliseconds
        self._logged = False

    def timing(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any) -> Any:
            begun = time.monotonic()
            try:
                return call(*arguments)
            finally:
                self._took += (time.monotonic() - begun) * 1000
                self._log_if_slow()

        return timed

    def _log_if_slow(self) -> None:
        if self._logged or self._took < settings.LEASEBOARD.slow_statement_ms:
            return
        self._logged = True
        request = f" (request {current.get()})" if current.get() else ""
        logger.warning("A statement took %.0f ms%s: %s", self._took, request, _shown(self._sql))


def _shown(sql: str) -> str:
    shown = " ".join(_VALUE.sub("?", str(sql)).split())
    return shown if len(shown) <= MAX_STATEMENT else f"{shown[:MAX_STATEMENT]}…"


MAX_LINES = 20
WINDOW_SECONDS = 60.0


class FloodFilter(logging.Filter):
    """Lets through MAX_LINES a minute of each of Django's loggers of refused requests, and then
    says how many it left out.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._lock = Lock()
        self._windows: dict[str, tuple[float, int]] = {}  # since when, how many lines

    def filter(self, record: logging.LogRecord) -> bool:
        if not record.name.startswith("django.security."):
            return True
        with self._lock:
            now = self._clock()
            since, lines = self._windows.get(record.name, (now, 0))
            left_out = max(0, lines - MAX_LINES)
            if now - since >= WINDOW_SECONDS:
                since, lines = now, 0
            self._windows[record.name] = (since, lines + 1)
        if lines == 0 and left_out:
            record.msg = f"{record.getMessage()} ({left_out} more like it were not logged)"
            record.args = ()
        return lines < MAX_LINES


REPEATS_SECONDS = 600.0
MAX_KEPT = 1_000  # different lines that are remembered
_NUMBER = re.compile(r"\d+")


class RepeatFilter(logging.Filter):
    """Lets one line of a cluster through, counts those that say the same but for their numbers, and
    after 10 minutes adds how many there were to the next one.

    A cluster that is down would else be a line for each try to reach it. Errors are never counted.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._lock = Lock()
        self._kept: dict[tuple[str, str, str], tuple[float, int]] = {}  # since when, how many more

    def filter(self, record: logging.LogRecord) -> bool:
        cluster = cluster_at_work.get()
        if not cluster or record.levelno >= logging.ERROR:
            return True
        text = record.getMessage()
        key = (cluster, record.name, _NUMBER.sub("#", text))
        now = self._clock()
        with self._lock:
            since, more = self._kept.get(key, (None, 0))
            if since is not None and now - since < REPEATS_SECONDS:
                self._kept[key] = (since, more + 1)
                return False
            self._kept.pop(key, None)  # the oldest one stands first
            self._kept[key] = (now, 0)
            if len(self._kept) > MAX_KEPT:
                del self._kept[next(iter(self._kept))]
        if more and since is not None:
            minutes = max(1, round((now - since) / 60))
            record.msg, record.args = f"{text} ({more} more like it in {minutes} min)", ()
        return True
