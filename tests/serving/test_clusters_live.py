"""Two clusters at once, and a restart: each shows its own, and nothing is lost or doubled."""

from __future__ import annotations

import re
import signal
import urllib.error
import urllib.parse

from tests.support.api_client import LeaseApi
from tests.support.processes import Server, ended, free_port, get, manage, serving, wait_for
from tests.support.programs.lease_apis import changes_in, context_file, history, lease_api
from tests.support.signing_in import form_of, rows, signed_in


def leases_page(server: Server, browser, cluster: str) -> str:
    with browser.open(f"{server.url}/c/{cluster}/leases/", timeout=60) as answer:
        return answer.read().decode()


def test_each_cluster_shows_its_own_and_one_that_stops_is_stale_alone(tmp_path):
    with lease_api(tmp_path / "b") as (process, url):
        other = LeaseApi(tmp_path / "b" / "kubeconfig")
        other.create("only-in-b", holder="b-1")
        source = url.replace("://", f"://{other.token}@")
        with serving(
            tmp_path / "a", "--no-demo", "--cluster", "a=embedded", "--cluster", f"b=url:{source}"
        ) as server:
            server.wait_synced()
            LeaseApi(server.kubeconfig).create("only-in-a", holder="a-1")
            browser = signed_in(server)
            wait_for(lambda: list(rows(browser, server, "a")) == ["default/only-in-a"], what="a")
            wait_for(lambda: list(rows(browser, server, "b")) == ["default/only-in-b"], what="b")
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=60)
            wait_for(
                lambda: 'data-live="stale"' in leases_page(server, browser, "b"), what="b stale"
            )
            assert 'data-live="live"' in leases_page(server, browser, "a")
            assert list(rows(browser, server, "b")) == ["default/only-in-b"]
            assert other.token not in server.text


def test_a_cluster_that_an_admin_adds_is_watched_now_and_after_a_restart(tmp_path):
    with lease_api(tmp_path / "b") as (_process, _url):
        other = LeaseApi(tmp_path / "b" / "kubeconfig")
        other.create("only-in-b", holder="b-1")
        text = (tmp_path / "b" / "kubeconfig").read_text()
        with serving(tmp_path / "a", "--no-demo") as server:
            server.wait_synced()
            browser = signed_in(server)
            page = f"{server.url}/clusters/new/"
            with browser.open(page, timeout=60) as answer:
                fields = form_of(answer.read().decode())
            body = urllib.parse.urlencode(fields | {"name": "prod", "kubeconfig": text}).encode()
            with browser.open(page, body, timeout=60) as answer:
                assert "The cluster prod is added." in answer.read().decode()
            wait_for(lambda: shown(browser, server, "prod") == ["default/only-in-b"], what="prod")
        with ended(server.again()) as again:
            wait_for(lambda: shown(browser, again, "prod") == ["default/only-in-b"], what="prod")
            answers = [get(f"{again.url}/metrics")[1]]
            for path in ("clusters/", "clusters/?format=json", "security-log/", "c/prod/leases/"):
                with browser.open(f"{again.url}/{path}", timeout=60) as answer:
                    answers.append(answer.read().decode())
            assert ["prod" in text for text in answers] == [True] * 5
        answers += [again.text, manage(again.data, "export_history").stdout]
        kept = {path: path.read_bytes() for path in again.data.rglob("*") if path.is_file()}
        assert any(b"only-in-b" in content for content in kept.values())
        assert [text for text in answers if other.token in text] == []
        assert [path for path, content in kept.items() if other.token.encode() in content] == []


def shown(browser, server: Server, cluster: str) -> list[str]:
    try:
        return list(rows(browser, server, cluster))
    except urllib.error.HTTPError:  # it is not there yet
        return []


def test_a_killed_server_learns_on_restart_what_happened_meanwhile_once(tmp_path):
    with lease_api(tmp_path / "b") as (_process, _url):
        config = context_file(tmp_path / "kubeconfig-b", tmp_path / "b" / "kubeconfig")
        api = LeaseApi(config)
        for name in ("quiet", "moved", "dies"):
            api.create(name, holder="one")
        arguments = ("--cluster", "b=context:leaseboard")
        server = Server(tmp_path / "a", *arguments, KUBECONFIG=str(config))
        server.wait_synced()
        wait_for(
            lambda: len(changes_in(tmp_path / "a", "b")) == 3, what="the first sight in history"
        )
        api.take("moved", holder="two", transitions=1)
        wait_for(lambda: len(changes_in(tmp_path / "a", "b")) == 4, what="a change seen live")
        server.kill()

        api.take("moved", holder="three", transitions=2)
        api.take("moved", holder="four", transitions=3)
        api.delete("dies")
        api.create("born", holder="one")

        with serving(tmp_path / "a", *arguments, KUBECONFIG=str(config)) as again:
            again.wait_synced()
            wait_for(
                lambda: len(changes_in(tmp_path / "a", "b")) >= 8, what="what happened meanwhile"
            )
        reported = history(tmp_path / "a", "b")
    assert sorted((c["name"], c["change"], c["holder"], c["inferred"]) for c in reported) == sorted(
        [
            ("born", "created", "one", True),
            ("dies", "created", "one", True),
            ("dies", "deleted", None, True),
            ("moved", "created", "one", True),
            ("moved", "replaced", "two", False),
            ("moved", "replaced", "three", True),
            ("moved", "replaced", "four", True),
            ("quiet", "created", "one", True),
        ]
    )


def test_pages_report_an_unreachable_or_refusing_api_and_stay_up(tmp_path):
    with lease_api(tmp_path / "b") as (_process, url):
        dead = free_port()
        with serving(
            tmp_path / "a",
            "--no-demo", "--cluster", "a=embedded", "--cluster", f"dead=url:http://127.0.0.1:{dead}",
            "--cluster", f"shut=url:{url}",
        ) as server:  # fmt: skip
            browser = signed_in(server)
            page = wait_for(
                lambda: text if "refused" in (text := leases_page(server, browser, "shut")) else "",
                what="the refusing cluster to be shown as such",
            )
            assert 'data-live="refused"' in page
            with browser.open(f"{server.url}/readyz", timeout=60) as answer:
                assert answer.status == 200, "two clusters that cannot be watched fail nothing"
                text = answer.read().decode()
            assert text.startswith("ok\n")
            assert f"Cannot reach http://127.0.0.1:{dead}" in text
            assert get(f"{server.url}/readyz") == (
                200, "ok\n2 of 3 clusters not listed, 0 tasks down\n",
            )  # fmt: skip
            assert rows(browser, server, "a") == {}
            assert "Traceback" not in server.text
            lines = [line for line in server.text.splitlines() if " leases.kube" in line]
            assert lines
            assert [line for line in lines if not re.search(r": (a|dead|shut): ", line)] == []
            tries = 'leaseboard_watch_breaks_total{cluster="dead"} '
            wait_for(
                lambda: float(get(f"{server.url}/metrics")[1].partition(tries)[2].split()[0]) >= 3,
                what="the dead cluster to be tried again",
            )
            (said,) = [line for line in server.text.splitlines() if ": dead: no list: " in line]
            assert said.endswith("Check that the API server runs.")
