"""Signing in by a printed link, as a person does: open it, then press its button."""

from __future__ import annotations

import http.cookiejar
import json
import re
import urllib.parse
import urllib.request
from typing import Any

from playwright.sync_api import Page

from tests.support.processes import Server

Opener = urllib.request.OpenerDirector
Cookies = urllib.request.HTTPCookieProcessor


def cookie_keeper() -> Opener:
    """A browser without eyes."""
    return urllib.request.build_opener(Cookies(http.cookiejar.CookieJar()))


def signed_in(server: Server) -> Opener:
    """A browser without eyes that has used the printed link."""
    opener = cookie_keeper()
    press_button(opener, server.printed("Sign in"))
    return opener


def cookies(opener: Opener, server: Server) -> list[Any]:
    """Those of a browser without eyes, for one with eyes: the printed link signs in once."""
    (jar,) = [one.cookiejar for one in opener.handlers if isinstance(one, Cookies)]  # type: ignore[attr-defined]
    return [{"name": one.name, "value": one.value, "url": server.url} for one in jar]


def with_token(cookie: str, token: str) -> str:
    """The cookie of a session, and that of a CSRF token beside it."""
    mark = cookie.partition("=")[0].partition("_")[2]
    return f"{cookie}; csrftoken_{mark}={token}"


def rows(opener: Opener, server: Server, cluster: str) -> dict[str, dict[str, object]]:
    with opener.open(f"{server.url}/c/{cluster}/leases/?format=json", timeout=60) as answer:
        items = json.load(answer)["items"]
    return {f"{item['namespace']}/{item['name']}": item for item in items}


def press_button(opener: Opener, link: str) -> None:
    """Open the link and send its form. Raises HTTPError where the server refuses."""
    with opener.open(link, timeout=60) as answer:
        form = answer.read().decode()
    send_form(opener, link, form)


def form_of(page: str) -> dict[str, str]:
    """What the hidden fields of a page's forms hold."""
    return dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]+)"', page))


def send_form(opener: Opener, link: str, form: str) -> None:
    fields = form_of(form)
    assert set(fields) == {"csrfmiddlewaretoken", "token"}, form
    action = re.search(r'<form[^>]* action="([^"]+)"', form)
    assert action is not None
    body = urllib.parse.urlencode(fields).encode()
    with opener.open(urllib.parse.urljoin(link, action[1]), body, timeout=60) as answer:
        answer.read()


def sign_in_page(page: Page, link: str) -> None:
    """The same in Chromium."""
    page.goto(link)
    page.get_by_role("button", name="Sign in as").click()
    page.wait_for_url(lambda url: "/sign-in/" not in url)
