"""No log line and no message holds a secret: an API token, the token of a link, or a
secret of the settings.

They are cut out of every log record before it is written. Django logs the path of a refused
request, uvicorn logs paths with their queries, and a library may repeat what it was given, so
cutting at each caller would miss some.
"""

from __future__ import annotations

import logging
import re
from urllib.parse import parse_qsl, quote, unquote, urlsplit

HIDDEN = "[hidden]"
# /sign-in/TOKEN/ but not /sign-in/link/; /badge/TOKEN.svg; ?key=TOKEN; an API token. Quotes,
# blanks and the query end a token.
_TOKEN = re.compile(
    r"(/sign-in(?:/|%2f)+(?!link/)|/badge(?:/|%2f)+|[?&]key=|lbt_)[^/?&#\s'\"]+", re.IGNORECASE
)
MAX_REFUSAL = 300  # characters of a refused request that the log keeps
MIN_SECRET = 4  # a shorter one is no secret, and hiding it would garble every text
_PASSWORD_OPTION = re.compile("pass|secret|token", re.IGNORECASE)
_secrets: set[str] = set()  # of the settings; filled before anything is logged


def hide(*secrets: str) -> None:
    """Cut these, and how a URL spells them, out of all that `redact` sees from now on."""
    for secret in secrets:
        if len(secret) >= MIN_SECRET:
            _secrets.update((secret, quote(secret), quote(secret, safe="")))


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


class RedactingFormatter(logging.Formatter):
    """Cuts tokens out of the whole line, its traceback included."""

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
            record.args = tuple(redact(one) if isinstance(one, str) else one for one in record.args)
        return True


def redact_loggers(*names: str) -> None:
    """Let these loggers cut tokens out of what they log."""
    for name in names:
        logging.getLogger(name).addFilter(RedactingFilter())
