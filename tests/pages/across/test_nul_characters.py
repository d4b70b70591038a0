"""A NUL character in any form is refused by one sentence."""

from __future__ import annotations

import re

import pytest

FORMS = [
    ("/badges/", {"name": "a\0b", "cluster": "a"}),
    ("/wall-links/", {"name": "a\0b", "clusters": "a"}),
    ("/tokens/", {"name": "a\0b", "role": "operator", "days": "1"}),
    ("/notifications/quiet/", {"reason": "a\0b"}),
    ("/c/a/leases/new/", {"namespace": "web", "name": "a", "reason": "a\0b"}),
]


@pytest.mark.parametrize(("path", "given"), FORMS)
def test_a_nul_character_is_refused_by_one_sentence(admin, board, path, given):
    answer = admin.post(path, given)
    said = re.findall(r'class="err">.*?<span>(.*?)</span>', answer.content.decode(), re.DOTALL)
    assert (answer.status_code, said.count("Leave out the NUL character.")) == (422, 1)
    assert "Null characters are not allowed." not in said
