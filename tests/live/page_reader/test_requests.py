"""What a page may ask its socket for."""

from __future__ import annotations

import msgspec
import pytest

from dashboard.live.messages import BadShow, read_show


@pytest.mark.parametrize(
    "text", ["", "x", "[]", '{"show": 3}', '{"show": {"row": [1]}}', '{"feed": "x"}']
)
def test_a_message_of_another_shape_is_refused_with_a_sentence(text):
    with pytest.raises(BadShow, match="A page says what it shows"):
        read_show(text)


def test_a_page_may_not_ask_for_more_than_a_page():
    names = [f"ns/{n}" for n in range(501)]
    with pytest.raises(BadShow, match="500"):
        read_show(msgspec.json.encode({"show": {"row": names}}).decode())


def test_a_page_that_wants_changes_in_an_unknown_form_is_refused():
    with pytest.raises(BadShow, match="feed_as"):
        read_show('{"feed": 1, "feed_as": "poem"}')
