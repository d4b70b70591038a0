"""The pages of a server that kills itself: see serve_and_die."""

from __future__ import annotations

import urllib.error

from tests.support.processes import wait_for
from tests.support.signing_in import Opener

PROGRAM = ("-m", "tests.serving.survival.serve_and_die")


def read(opener: Opener, url: str) -> str:
    with opener.open(url, timeout=120) as answer:
        text: str = answer.read().decode()
    return text


def drawn(opener: Opener, url: str) -> str:
    """The page of a form, once the watch knows the Lease."""

    def look() -> str | None:
        try:
            return read(opener, url)
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise
            return None

    return wait_for(look, what=f"the form {url}")
