"""A Lease as YAML, and the lines that a write changes, however large they are."""

from __future__ import annotations

import random

import pytest

from dashboard.forms.yaml_form import read_yaml
from dashboard.parts.lease_head import MAX_DIFF, diff_lines, to_yaml


def test_a_small_difference_shows_each_line_beside_the_one_that_it_replaces():
    old, new = "a: 1\nb: 2\nc: 3\n", "a: 1\nb: 20\nc: 30\n"
    assert diff_lines(old, new) == [
        (" ", "a: 1"), ("-", "b: 2"), ("+", "b: 20"), ("-", "c: 3"), ("+", "c: 30"),
    ]  # fmt: skip


def test_a_change_in_a_long_text_is_shown_with_the_lines_around_it():
    lines = [f"line {number}" for number in range(50_000)]
    changed = [*lines[:30_000], "new", *lines[30_001:]]
    shown = diff_lines("\n".join(lines), "\n".join(changed))
    assert ("-", "line 30000") in shown
    assert ("+", "new") in shown
    assert len(shown) == 8


@pytest.mark.parametrize("count", [300, 1500, 20_000, 200_000])
def test_a_difference_of_everything_is_cut_and_says_so(count):
    chance = random.Random(count)  # noqa: S311
    texts = ["\n".join(str(chance.random()) for _ in range(count)) for _ in range(2)]
    shown = diff_lines(*texts)
    assert len(shown) == min(2 * count, MAX_DIFF + 1)
    assert {sign for sign, _ in shown[:MAX_DIFF]} <= {"-", "+"}
    if 2 * count > MAX_DIFF:
        assert shown[-1] == (" ", f"… and {2 * count - MAX_DIFF:,} more lines")


def test_a_large_lease_is_written_as_yaml_that_reads_the_same():
    chance = random.Random(5)  # noqa: S311
    pool = "ab \n\t'\"#:-0~y{%|>&*!é\u202e\u2028\x7f\x1b\0\ufeff\U0001f600"
    for size in (10, 200_000):
        odd = "".join(chance.choices(pool, k=size))
        lease = {"metadata": {"annotations": {"a": odd, "b": "x" * size}}, "spec": {"n": 15}}
        assert read_yaml(to_yaml(lease)).value == lease
