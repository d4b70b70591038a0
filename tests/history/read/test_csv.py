"""CSV that a spreadsheet opens runs nothing of what a holder is called; NDJSON stays exact."""

from __future__ import annotations

import csv
import io
import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leases.domain.change import ChangeType
from leases.history import export
from tests.support.values.changes import a_change

# What OWASP names, by itself and behind the end of a cell.
RUN = ["=1+1", "+1", "-1", "@SUM(1)", "\t=1", "\r=1", "\n=1", "\uff1d1", "=cmd|' /C calc'!A0"]


def row_of(**given_: object) -> dict[str, str]:
    text = "".join(export.as_csv([a_change(1, **given_)]))
    (row,) = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    return row


@pytest.mark.parametrize("holder", RUN)
def test_a_cell_that_would_be_run_is_text(holder):
    row = row_of(holder=holder, previous_holder=f"x;{holder}", name=holder)
    for cell in (row["holder"], row["name"]):
        assert not cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d"))
        assert cell.removeprefix("'")[-1] == holder[-1]
    assert row["previous_holder"].startswith("x;")


def test_a_semicolon_ends_no_cell_and_common_texts_are_as_they_are():
    text = "".join(export.as_csv([a_change(1, holder="x;=1", previous_holder='say "hi", you')]))
    assert text.startswith(",".join(export.FIELDS) + "\r\n")
    assert '"x;=1"' in text
    assert '"say ""hi"", you"' in text
    row = row_of(
        holder="cp-1_8e1f", change=ChangeType.RECONFIGURED, fields=("labels",), transitions=-3
    )
    assert row["holder"] == "cp-1_8e1f"
    assert row["transitions"] == "-3", "a number of ours is no formula"
    assert row["at"] == "2026-11-20T12:00:01.123456Z"
    assert (row["inferred"], row["inferred_since"]) == ("false", "")


def test_control_characters_are_shown_as_symbols():
    every = "".join(chr(code) for code in range(0xA0))
    holder = row_of(holder=f"a{every}")["holder"]
    assert len(holder) == len(every) + 1
    assert not [one for one in holder if unicodedata.category(one) == "Cc"]
    assert holder[1:4] == "\u2400\u2401\u2402"


@given(st.text(min_size=1, max_size=20), st.text(max_size=20))
def test_any_text_is_one_cell_of_one_line_and_exact_in_ndjson(holder, previous):
    if not _encodes(holder + previous):
        return
    change = a_change(1, holder=holder, previous_holder=previous)
    _header, line = export.as_csv([change])
    assert line.endswith("\r\n")
    assert "\n" not in line[:-2]
    (row,) = csv.reader([line], strict=True)
    assert len(row) == len(export.FIELDS)
    assert not row[export.FIELDS.index("holder")].startswith(("=", "+", "-", "@", "\t", "\r"))
    (exact,) = export.ndjson([change])
    assert (json.loads(exact)["holder"], json.loads(exact)["previous_holder"]) == (holder, previous)


def _encodes(text: str) -> bool:
    """Whether JSON can spell it: no half of a surrogate pair."""
    return not any(unicodedata.category(one) == "Cs" for one in text)
