"""Chunks of a stream become lines, wherever they are cut."""

from __future__ import annotations

import pytest

from leases.wire.renewal_lines import LineCutter, LineLengthError

STREAM = '{"a":1}\n{"holder":"knoten-ä-☸"}\n\n{"c":3}\n'.encode()
LINES = [b'{"a":1}', '{"holder":"knoten-ä-☸"}'.encode(), b'{"c":3}']


@pytest.mark.parametrize("cut", range(len(STREAM) + 1))
def test_a_stream_cut_in_two_at_any_byte_gives_the_same_lines(cut: int) -> None:
    cutter = LineCutter()
    assert cutter.feed(STREAM[:cut]) + cutter.feed(STREAM[cut:]) == LINES


def test_a_stream_that_comes_byte_by_byte_gives_the_same_lines() -> None:
    cutter = LineCutter()
    assert [line for byte in STREAM for line in cutter.feed(bytes([byte]))] == LINES


def test_bytes_after_the_last_newline_are_no_line_yet() -> None:
    cutter = LineCutter()
    assert cutter.feed(b'{"a":1}\n{"b"') == [b'{"a":1}']
    assert cutter.feed(b":2}") == []
    assert cutter.feed(b"\n") == [b'{"b":2}']


def test_a_line_may_be_just_as_long_as_allowed() -> None:
    assert LineCutter(longest=4).feed(b"1234\n1234\n") == [b"1234", b"1234"]


@pytest.mark.parametrize("chunks", [[b"12345\n"], [b"12345"], [b"123", b"45"], [b"123", b"45\n"]])
def test_a_line_longer_than_allowed_is_refused_before_it_fills_the_memory(
    chunks: list[bytes],
) -> None:
    cutter = LineCutter(longest=4)
    with pytest.raises(LineLengthError, match="longer than 4 bytes"):
        list(map(cutter.feed, chunks))
