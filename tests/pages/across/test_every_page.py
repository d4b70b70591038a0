"""What holds for every page."""

from __future__ import annotations

import re

import pytest
from django.conf import settings

from tests.pages.conftest import HTMX, text_of
from tests.support.board import KEY, browser_of, member
from tests.support.page_paths import PATHS

# Words of ours that no reader knew, as text of a page.
RIDDLES = re.compile(
    r"[Tt]hings to mend|Beside the [Nn]odes|\bev/s\b|>\s*\d* ?waits?\s*<|\d wait\b|>\s*Sort\s*<"
    r"|[Pp]hases? that (the incident's )?changes led to|phase is one that the incident's"
)


@pytest.mark.parametrize("path", PATHS)
def test_a_page_has_no_riddle_inline_style_handler_or_unknown_icon_and_can_be_drawn_again(
    path, store, admin
):
    html = text_of(admin.get(path))
    assert RIDDLES.findall(html) == []
    assert " style=" not in html
    assert not re.search(r"\son[a-z]+=", html)
    inline = re.findall(r"<script(?![^>]*\bsrc=)([^>]*)>", html)
    assert all('type="importmap"' in tag and "nonce=" in tag for tag in inline)
    wanted = set(re.findall(r'<use href="#([^"]+)"', html))
    assert wanted <= set(re.findall(r'<symbol id="([^"]+)"', html))
    tags = re.findall(r"<[^>]* data-region=[^>]*>", html)
    ids = [re.search(r' id="([^"]+)"', tag)[1] for tag in tags]
    drawn = text_of(admin.get(path, headers=HTMX | {"X-Regions": " ".join(ids)}))
    assert [one for one in ids if f' id="{one}"' not in drawn] == []


@pytest.mark.parametrize("path", PATHS)
def test_a_page_about_plain_names_has_no_sign_beyond_latin_1(path, store, admin):
    """One of them doubles what the text of a page takes in memory."""
    assert re.findall(r".*[^\x00-\xff].*", text_of(admin.get(path))) == []


def test_no_source_of_a_page_has_a_riddle():
    """Also what a page says in rare states."""
    places = ("templates", "static/js", "dashboard", "docs", "leases/domain")
    for path in (one for place in places for one in (settings.BASE_DIR / place).rglob("*.*")):
        if path.suffix in (".html", ".js", ".py", ".md"):
            assert RIDDLES.findall(path.read_text()) == [], path


def test_only_admins_get_the_mark_that_they_may_edit(store, operator, admin):
    assert "<body data-may-edit" in text_of(admin.get(f"/c/a/leases/{KEY}/"))
    assert "<body data-may-edit" not in text_of(operator.get(f"/c/a/leases/{KEY}/"))


def test_the_theme_of_the_cookie_is_drawn_by_the_server(store, db):
    client = browser_of(member("tom", "operator"))
    client.cookies["theme"] = "dark"
    assert '<html lang="en" data-theme="dark"' in text_of(client.get("/c/a/"))
    client.cookies["theme"] = '"><script>'
    assert "data-theme" not in text_of(client.get("/c/a/"))[:200]


def test_a_user_without_a_role_sees_whom_to_ask(store, guest):
    response = guest.get("/c/a/")
    assert response.status_code == 403
    html = text_of(response)
    assert "Ask an admin for the role <b>operator</b>" in " ".join(html.split())
    assert str(KEY) not in html
