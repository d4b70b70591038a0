"""What an API server accepts, however odd: PostgreSQL holds it, and all that comes after."""

from __future__ import annotations

import json
import random
import string

from tests.serving.survival.poison import NUMBERS, TIMES, spec
from tests.support.api_client import LeaseApi, leases
from tests.support.processes import Server, ended, get, wait_for
from tests.support.signing_in import signed_in

# Letters in no order, or PostgreSQL would compress them to a length that its indexes bear.
LONG = "".join(random.Random(1).choices(string.ascii_letters + string.digits, k=3500))  # noqa: S311
ODD = (LONG, LONG * 28, "a\0b", "␀␛", "ключ" * 300, "<b>\u202e=1+1")
PAGES = ("", "leases/", "leases/default/odd/", "timeline/", "holders/", "history/", "wall/")


def test_history_is_complete_and_exact(tmp_path, postgres):
    database = {"LEASEBOARD_DATABASE_URL": postgres.database()}
    with ended(Server(tmp_path, "--no-demo", **database)) as server:
        server.wait_synced()
        api = LeaseApi(tmp_path / "kubeconfig")
        api.create("odd", holder="first")
        for number, holder in enumerate(ODD):
            api.take("odd", holder=holder, transitions=2**31 - 1 if number % 2 else 0)
        for other in (*TIMES, *NUMBERS):
            api.send("POST", leases(), {"metadata": {"name": other.name}, "spec": spec(other)})
        api.create("last", holder="usual")

        browser = signed_in(server)

        def page(path: str) -> str:
            with browser.open(f"{server.url}/c/embedded/{path}", timeout=60) as answer:
                text: str = answer.read().decode()
                return text

        def stored() -> list[dict[str, object]]:
            return json.loads(page("history/?format=json"))["items"][::-1]

        # Some of the Leases expire soon after it.
        wait_for(lambda: any(one["name"] == "last" for one in stored()), what="the last change")
        changes = stored()
        taken = [change["holder"] for change in changes if change["name"] == "odd"]
        assert taken == ["first", *ODD]
        created = {change["name"] for change in changes if change["change"] == "created"}
        assert {other.name for other in (*TIMES, *NUMBERS)} < created
        assert get(f"{server.url}/readyz") == (200, "ok\n")
        for path in PAGES:
            assert "History cannot be written" not in page(path)
