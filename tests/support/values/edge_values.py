"""Values at the edges of what a field or parameter may hold."""

from __future__ import annotations

import base64
from urllib.parse import quote

ARABIC = {ord("0") + digit: 0x660 + digit for digit in range(10)}


OLD_CURSOR = base64.urlsafe_b64encode(b"0001-01-01T00:00:00+23:59|1").decode().rstrip("=")


BIG_CURSOR = base64.urlsafe_b64encode(b"2026-01-01T00:00:00+00:00|9" + b"9" * 20).decode()


# As they stand in a query string.
VALUES = (
    "", "0", "1", "-1", "1.5", "1e9", "nan", "0x10", "007", "000000000000000019999",
    "999999999999999999999", "1" + "0" * 5000, "true", "null", "[]", "a,b",
    "0001-01-01", "0001-01-01T00:00:00%2B23:59", "9999-12-31T23:59:59.999999Z",
    "1969-12-31T23:59:59Z", "2026-02-30", "2026-11-20T03:12:40", "12:34:56", "3:04:05", "29:99",
    quote("2026-11-20".translate(ARABIC)), quote("3".translate(ARABIC)), quote("²"),
    "a%00b", "%0d%0aSet-Cookie:x", "%1b[31m", "%20", "x" * 100_000, quote("é" * 20_000),
    "%ff%fe", "%ed%a0%80", "%", "%zz", quote("\u202egnp.exe"), quote("\U0001f600"),
    quote("<script>alert(1)</script>"), quote("'\"; DROP TABLE leases_change;--"),
    OLD_CURSOR, BIG_CURSOR, "//elsewhere.example", "..%2f..%2f", "a%3db%2cc%21%3dd", "(",
)  # fmt: skip
