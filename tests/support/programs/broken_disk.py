"""A server whose disk takes no writes for a while."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path

from tests.support.api_client import LeaseApi
from tests.support.processes import Server, ended, get, serving, wait_for
from tests.support.programs.lease_apis import history, lease_api
from tests.support.signing_in import signed_in

PAGES = ("", "leases/", "leases/default/one/", "timeline/", "holders/", "history/")


SAID = "History cannot be written"


Break = Callable[[Server], Callable[[], Server]]  # breaks; what it gives mends: the server to ask


def survives(tmp_path: Path, data: Path, broken: Break) -> None:
    with lease_api(tmp_path / "api") as (_, url):
        api = LeaseApi(tmp_path / "api" / "kubeconfig")
        source = url.replace("://", f"://{api.token}@")
        with serving(data, "--no-demo", "--cluster", f"b=url:{source}") as server:
            server.wait_synced()
            browser = signed_in(server)

            def page(path: str) -> str:
                with browser.open(f"{server.url}/c/b/{path}", timeout=60) as answer:
                    text: str = answer.read().decode()
                    return text

            api.create("one", holder="h-0")
            wait_for(lambda: len(history(data, "b")) == 1, what="the first change in history")
            mend = broken(server)
            takes = count(1)

            def all_say_so() -> bool:
                """A file that is there already may take a little more: not for long."""
                number = next(takes)
                api.take("one", holder=f"h-{number}", transitions=number)
                return all(SAID in page(path) for path in PAGES)

            wait_for(all_say_so, what="every page to say that history is not written")
            last = next(takes) - 1
            assert get(f"{server.url}/healthz")[0] == 200
            wait_for(lambda: f'title="h-{last}"' in page("leases/"), what="the page to be live")
            with ended(mend()) as mended:
                wait_for(lambda: SAID not in page(""), what="the page to be well again")
                assert mended.interrupt() == 0
        reported = [(change["change"], change["holder"]) for change in history(data, "b")]
    taken = [("replaced", f"h-{number}") for number in range(1, last + 1)]
    assert reported == [("created", "h-0"), *taken]
