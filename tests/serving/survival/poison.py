"""Leases that nobody would write on purpose and that an API server accepts all the same."""

from __future__ import annotations

from typing import Any

import msgspec

from tests.support.api_client import timestamp

FIRST, LAST = "0001-01-02T00:00:00.000000Z", "9999-12-31T23:59:59.999999Z"
MAX_INT32 = 2**31 - 1
LONG = 100_000
MARKUP = '"><script>alert(1)</script><img src=x onerror=alert(2)>'
NOW = ""  # stands for the time of the write


class Odd(msgspec.Struct, frozen=True):
    """One such Lease: what is left out is as an elector would write it."""

    name: str
    holder: str = "odd-holder"
    duration: int | None = 3600
    transitions: int | None = 1
    acquired: str | None = NOW
    renewed: str | None = NOW
    metadata: dict[str, Any] = {}


TIMES = [
    Odd("time-first", acquired=FIRST, renewed=FIRST),
    Odd("time-last", acquired=LAST, renewed=LAST),
    Odd("time-zero", acquired="0001-01-01T00:00:00.000000Z", renewed="0001-01-01T00:00:00.000000Z"),
    Odd("time-year-0", acquired="0000-01-01T00:00:00.000000Z", renewed=FIRST),
    Odd("time-before-year-0", renewed="0000-01-01T00:00:00.000000+23:00"),
    Odd("time-year-10000", renewed="9999-12-31T23:59:59.999999-23:00"),
    Odd("time-1969", acquired="1969-12-31T23:59:59.999999Z", renewed="1970-01-01T00:00:00.000000Z"),
    Odd(
        "time-ahead", acquired="2400-01-01T00:00:00.000000Z", renewed="2400-02-29T12:00:00.000000Z"
    ),
    Odd("time-swapped", acquired=LAST, renewed=FIRST),
    Odd("time-none", acquired=None, renewed=None),
]
NUMBERS = [
    Odd("number-longest", duration=MAX_INT32),
    Odd("number-most", transitions=MAX_INT32),
    Odd("number-largest-of-the-past", duration=MAX_INT32, transitions=MAX_INT32, renewed=FIRST),
    Odd("number-largest-of-the-future", duration=MAX_INT32, renewed=LAST),
    Odd("number-shortest", duration=1, transitions=0),
    Odd("number-none", duration=None, transitions=None),
]
HOLDERS = [
    Odd("holder-of-100-kb", holder="x" * LONG),
    Odd("holder-of-100-kb-beyond-ascii", holder="\N{SNOWMAN}" * (LONG // 3)),
    Odd("holder-longer-than-an-index-row", holder="".join(map(chr, range(0x4E00, 0x4E00 + 3500)))),
    Odd("holder-markup", holder=MARKUP),
    Odd("holder-template", holder="{{ 7 }}{% now 'Y' %}${7*7}<%= 7 %>"),
    Odd("holder-right-to-left", holder="\u202ereh-toh\u202c\u200f\u2067abc\u2069"),
    Odd("holder-nul", holder="a\0b"),
    Odd("holder-only-nul", holder="\0"),
    Odd("holder-controls", holder="\x01\x07\x1b[31mred\x7f\u0085\u2028\u2029"),
    Odd("holder-lines", holder="one\r\ntwo\n\tthree"),
    Odd("holder-blanks", holder="  a  "),
    Odd("holder-only-blanks", holder="   "),
    Odd("holder-formula", holder="=HYPERLINK(1+1)"),
    Odd("holder-sql", holder="'; DROP TABLE leases_change; --"),
    Odd("holder-path", holder="../../%2e%2e/etc?x=1#y&z"),
    Odd("holder-zalgo", holder="h" + "\u0301\u0327" * 500),
    Odd("holder-emoji", holder="\U0001f469\u200d\U0001f692\ufe0f\U0010ffff"),
    Odd("holder-word", holder="null"),
]
METADATA = [
    Odd("n" * 61 + ".x" * 96, holder="of-the-longest-name"),
    Odd("metadata-large", metadata={"annotations": {"large": "y" * 200_000}}),
    Odd("metadata-markup", metadata={"annotations": {"note": f"{MARKUP}\0\u202e"}}),
    Odd("metadata-many-labels", metadata={"labels": {f"l-{n}": "v" * 63 for n in range(500)}}),
    Odd(
        "metadata-owners",
        metadata={
            "ownerReferences": [
                {"apiVersion": "v1", "kind": MARKUP, "name": MARKUP, "uid": f"u-{number}"}
                for number in range(50)
            ]
        },
    ),
    Odd("metadata-finals", holder="metadata-finals", acquired=None, transitions=None),
]
ODD = [*TIMES, *NUMBERS, *HOLDERS, *METADATA]


def spec(odd: Odd) -> dict[str, Any]:
    return {
        "holderIdentity": odd.holder,
        "leaseDurationSeconds": odd.duration,
        "acquireTime": time_of(odd.acquired),
        "renewTime": time_of(odd.renewed),
        "leaseTransitions": odd.transitions,
    }


def time_of(moment: str | None) -> str | None:
    return timestamp() if moment == NOW else moment
