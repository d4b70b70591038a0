"""No log line holds the token of a link: tokens are cut out of every record before it is written.

Django logs the path of a refused request and uvicorn logs paths with their queries, so cutting at
each caller would miss some.
"""

from __future__ import annotations

import logging
import re

HIDDEN = "[hidden]"
# /sign-in/TOKEN/ but not /sign-in/link/; ?key=TOKEN. Quotes, blanks and the query end a token.
_TOKEN = re.compile(r"(/sign-in(?:/|%2f)+(?!link/)|[?&]key=)[^/?&#\s'\"]+", re.IGNORECASE)


def redact(text: str) -> str:
    """The text without the tokens of sign-in links and wall links."""
    return _TOKEN.sub(rf"\g<1>{HIDDEN}", text)


class RedactingFormatter(logging.Formatter):
    """Cuts tokens out of the whole line, its traceback included."""

    def format(self, record: logging.LogRecord) -> str:
        return redact(super().format(record))


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
