"""Write CSV cells that no spreadsheet runs.

Spreadsheets run cells that look like formulas.
Source: https://owasp.org/www-community/attacks/CSV_Injection
"""

from __future__ import annotations

import re

# Full-width ones too.
RUN_BY_SPREADSHEETS = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_NEEDS_QUOTES = re.compile("[\",;']")
# Control characters become their symbols, or the replacement character.
_SHOWN = (
    {code: 0x2400 + code for code in range(0x20)}
    | {0x7F: 0x2421}
    | dict.fromkeys(range(0x80, 0xA0), 0xFFFD)
)


def csv_cell(value: object) -> str:
    """Make a text safe for spreadsheets; some take a semicolon as the end of a cell."""
    if not isinstance(value, str):
        return "" if value is None else str(value).lower()
    if not value.isprintable():
        value = value.translate(_SHOWN)
    if value.startswith(RUN_BY_SPREADSHEETS):
        value = f"'{value}"
    if not _NEEDS_QUOTES.search(value):
        return value
    quoted = value.replace('"', '""')
    return f'"{quoted}"'
