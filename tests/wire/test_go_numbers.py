"""Numbers as strconv reads them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from leases.wire.selectors import parse_int, parse_uint


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (parse_int, "+007", 7),
        (parse_int, "-0", 0),
        (parse_int, "-9223372036854775808", -(2**63)),
        (parse_uint, "18446744073709551615", 2**64 - 1),
        (parse_uint, "0" * 5000 + "1", 1),
    ],
)
def test_a_number(parse: Callable[[str], int], text: str, value: int) -> None:
    assert parse(text) == value


@pytest.mark.parametrize(
    ("parse", "text", "message"),
    [
        (parse_int, "", 'strconv.ParseInt: parsing "": invalid syntax'),
        (parse_int, "\u0661", 'strconv.ParseInt: parsing "\u0661": invalid syntax'),
        (parse_int, "1\n", 'strconv.ParseInt: parsing "1\\n": invalid syntax'),
        (parse_int, "1_0", 'strconv.ParseInt: parsing "1_0": invalid syntax'),
        (parse_int, "9223372036854775808",
         'strconv.ParseInt: parsing "9223372036854775808": value out of range'),
        (parse_uint, "+1", 'strconv.ParseUint: parsing "+1": invalid syntax'),
        (parse_uint, "18446744073709551616",
         'strconv.ParseUint: parsing "18446744073709551616": value out of range'),
        (parse_uint, "9" * 5000,
         f'strconv.ParseUint: parsing "{"9" * 5000}": value out of range'),
    ],
)  # fmt: skip
def test_what_is_no_number(parse: Callable[[str], int], text: str, message: str) -> None:
    with pytest.raises(ValueError, match="^strconv") as error:
        parse(text)
    assert str(error.value) == message
