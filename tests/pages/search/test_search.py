"""One field finds Leases, holders, namespaces, pages and actions.

The best come first, each only for those who may have it, and fast among many.
"""

from __future__ import annotations

import html
import re
from datetime import UTC, datetime, timedelta

import pytest

from dashboard.pages.search import names as search
from dashboard.pages.search.names import NameText
from leases.domain.change import ChangeType
from leases.domain.lease import Lease, LeaseSpec, ObjectMeta, ObjectName
from leases.tracking.store import Store
from leases.wire.watch_decoding import Applied, Deleted
from tests.pages.conftest import HTMX, text_of
from tests.support.board import KEY, a_lease, fill
from tests.support.values.change_rows import to_row
from tests.support.values.changes import a_change
from tests.support.values.incident_rows import incident_with, store

pytestmark = pytest.mark.django_db

PATH = "/c/a/search/"
NODE = "kube-scheduler-node-7"


def heartbeat(name: str = NODE) -> Lease:
    now = datetime.now(UTC)
    meta = ObjectMeta(name=name, namespace="kube-node-lease", uid=name, resource_version="1")
    spec = LeaseSpec(holder_identity=name, lease_duration_seconds=40, renew_time=now)
    return Lease(meta, spec)


@pytest.fixture
def many(board) -> Store:
    """Leases with `scheduler` in many places of cluster a, and one of cluster b."""
    keys = [
        KEY,
        ObjectName("apps", "kube-scheduler"),
        ObjectName("apps", "myscheduler"),
        ObjectName("apps", "scheduler-extender"),
        ObjectName("scheduler-system", "other"),
    ]
    store = board.clusters["a"].store
    free = a_lease(ObjectName("apps", "schedulers-free"), holder=None)
    fill(store, *map(a_lease, keys), free, heartbeat())
    fill(board.clusters["b"].store, a_lease(holder="Pod-OF-B_7f3e"))
    return store


def found(browser, text: str, *, group: str = "", **more: str) -> list[dict[str, str]]:
    items = browser.get(PATH, {"q": text, "format": "json", **more}).json()["items"]
    return [one for one in items if group in ("", one["group"])]


def labels(browser, text: str, *, group: str = "", **more: str) -> list[str]:
    return [one["label"] for one in found(browser, text, group=group, **more)]


def test_names_that_fit_best_come_first_and_other_clusters_last(many, operator):
    items = found(operator, "SCHEDULER", group="lease")
    assert [(one["cluster"], one["label"]) for one in items] == [
        ("a", "kube-system/scheduler"),
        ("a", "apps/schedulers-free"),  # of those that begin so, the one in trouble
        ("a", "apps/scheduler-extender"),
        ("a", "apps/kube-scheduler"),
        ("a", f"kube-node-lease/{NODE}"),  # begins a word, as the one before, but is a heartbeat
        ("a", "apps/myscheduler"),
        ("a", "scheduler-system/other"),
        ("b", "kube-system/scheduler"),
    ]
    assert items[0]["url"].endswith("/c/a/leases/kube-system/scheduler/")
    assert items[0]["detail"] == "held by cp-1"
    assert (items[1]["phase"], items[1]["detail"]) == ("vacant", "vacant")


def test_words_in_any_order_and_whole_keys_find(many, operator):
    assert labels(operator, "extender app", group="lease") == ["apps/scheduler-extender"]
    assert labels(operator, "kube-system/sch", group="lease")[0] == "kube-system/scheduler"
    assert labels(operator, "extender nonsense") == []


def test_holders_namespaces_pages_and_clusters_are_found(many, operator):
    (one,) = found(operator, "cp-1", group="holder")
    assert (one["label"], one["url"][-18:]) == ("cp-1", "/c/a/holders/cp-1/")
    assert labels(operator, "pod-of", group="holder") == ["Pod-OF-B"], "as it is written"
    assert labels(operator, "kube-sys", group="namespace")[:1] == ["kube-system"]
    pages = [(one["cluster"], one["label"]) for one in found(operator, "timel")]
    everywhere = (None, "Timeline of all clusters")
    assert pages == [(None, "Timeline"), everywhere, ("b", "Timeline")], "this cluster's first"
    assert labels(operator, "cluster b") == ["Cluster b"]
    groups = [one["group"] for one in found(operator, "holders")]
    assert groups[0] == "page", "the group with the best line comes first"


def test_what_comes_and_goes_later_is_found_and_not_found(many, board, operator, monkeypatch):
    monkeypatch.setattr(search, "COST", 1e9)  # all Leases are walked once
    assert labels(operator, "later") == []
    feed, key = board.feeds["a"], ObjectName("apps", "later")
    for event, there in (
        (Applied(a_lease(key, holder="newcomer", version="200")), ["apps/later"]),
        (Deleted(a_lease(key, version="201")), []),
    ):
        feed.publish(many.follow((event,), datetime.now(UTC)))
        assert labels(operator, "later", group="lease") == there
    assert labels(operator, "newcomer", group="holder") == ["newcomer"]


def test_a_node_is_found_as_a_holder_too(many, operator):
    (one,) = found(operator, "node-7", group="holder")
    assert (one["label"], one["detail"]) == (NODE, "node")
    assert f"<h1>{NODE}</h1>" in text_of(operator.get(one["url"]))
    assert labels(operator, "kube-node-lease", group="holder") == [], "not by the namespace"
    fill(many, *(tracked.lease for tracked in many.snapshot()), a_lease(holder=f"{NODE}_7f3e"))
    assert labels(operator, "node-7", group="holder") == [NODE], "once"


def test_a_deleted_lease_is_found_while_history_knows_it(many, board, operator, monkeypatch):
    ends = datetime.now(UTC)
    for name, change, minutes in (
        ("old-job", ChangeType.CREATED, 9), ("old-job", ChangeType.DELETED, 5),
        ("kube-scheduler", ChangeType.DELETED, 5),
        ("old-again", ChangeType.DELETED, 9), ("old-again", ChangeType.CREATED, 5),
    ):  # fmt: skip
        at = ends - timedelta(minutes=minutes)
        to_row(a_change(minutes, change=change, at=at, namespace="apps", name=name)).save()
    (one,) = found(operator, "old-", group="lease")
    assert (one["label"], one["phase"]) == ("apps/old-job", "deleted")
    assert one["detail"].startswith("deleted ")
    page = operator.get(one["url"])
    assert "old-job" in text_of(page), page.status_code
    assert [one["phase"] for one in found(operator, "apps/kube-sched", group="lease")] == ["held"]
    assert labels(operator, "delete old-job", group="action") == []
    monkeypatch.setattr(search, "COST", 1e9)  # the names are not read again
    key = ObjectName("apps", "scheduler-extender")
    board.feeds["a"].publish(many.follow((Deleted(a_lease(key, version="201")),), ends))
    to_row(a_change(1, change=ChangeType.DELETED, at=ends, namespace="apps", name=key.name)).save()
    assert labels(operator, "extender", group="lease") == [str(key)]


def test_a_former_holder_is_found_too(many, board, operator, monkeypatch):
    monkeypatch.setattr(search, "COST", 1e9)  # the names are read once
    ends = datetime.now(UTC)
    for number, (change, holder, before) in enumerate((
        (ChangeType.TAKEN_OVER, "cp-1", "payment-6d9f-c4c4c_77aa"),
        (ChangeType.RELEASED, None, "Batch-Old"),
        (ChangeType.DELETED, None, "cp-1"),
        (ChangeType.RELEASED, None, f"{NODE}_88bb"),
    )):  # fmt: skip
        at = ends - timedelta(minutes=number)
        to_row(a_change(number, change=change, at=at, holder=holder, previous_holder=before)).save()
    (one,) = found(operator, "c4c4c", group="holder")
    assert (one["label"], one["detail"]) == ("payment-6d9f-c4c4c", "holds nothing now")
    page = operator.get(one["url"])
    assert "<h1>payment-6d9f-c4c4c</h1>" in text_of(page), page.status_code
    assert labels(operator, "batch-old", group="holder") == ["Batch-Old"]
    assert [one["detail"] for one in found(operator, "cp-1", group="holder")] == [""]
    assert [one["detail"] for one in found(operator, NODE, group="holder")] == ["node"]
    again = a_lease(KEY, holder="Batch-Old", version="300")
    board.feeds["a"].publish(many.follow((Applied(again),), ends))
    assert [one["detail"] for one in found(operator, "batch-old", group="holder")] == [""]


def test_actions_are_offered_to_those_who_may_alone(many, board, operator, admin):
    assert labels(admin, "", group="action", lease=str(KEY))[:4] == [
        f"{verb} {KEY}" for verb in ("Edit", "Release", "Hand over", "Delete")
    ]
    (first, *_) = found(admin, "hand kube-system/sched", group="action")
    assert first["url"].endswith(f"/c/a/leases/{KEY}/hand-over/")
    assert labels(admin, "edit", group="action", lease="apps/no-such") == []
    assert "People" in labels(admin, "people")
    for text in ("", "edit scheduler", "create", "people", "wall links", "mute"):
        assert labels(operator, text, group="action", lease=str(KEY)) == []
        for one in found(operator, text, group="page"):
            assert operator.get(one["url"]).status_code in (200, 302), one
    board.clusters["a"].read_only = True
    assert labels(admin, "edit", group="action", lease=str(KEY)) == []


def test_an_action_and_a_part_of_a_name_come_before_an_incident_that_has_both(many, admin):
    now = datetime.now(UTC)
    released = "kube-system/scheduler was released through a form of Leaseboard"
    store(incident_with(a_change(1, at=now), sentence=released, began=now, ended=now))
    first, *others = found(admin, "release sched")
    assert first["group"] == "action"
    assert "incident" in {one["group"] for one in others}


def test_the_word_of_an_action_alone_says_what_else_to_type(many, operator, admin):
    hint = "Hand over which Lease? Type a part of its name too: “hand sched”."
    ask = {"q": "hand"}
    assert hint in text_of(admin.get(PATH, ask, headers=HTMX))
    assert hint in text_of(admin.get(PATH, ask))
    here = admin.get(PATH, ask | {"lease": str(KEY)}, headers=HTMX)
    assert "which Lease?" not in text_of(here)
    assert f"Hand over {KEY}" in text_of(here)
    assert "which Lease?" not in text_of(admin.get(PATH, {"q": "hand sched"}, headers=HTMX))
    assert "which Lease?" not in text_of(operator.get(PATH, ask, headers=HTMX))


def test_a_wall_link_and_strangers_find_nothing(many, client, guest):
    assert client.get(f"{PATH}?q=scheduler&key=nonsense").status_code == 302
    assert guest.get(f"{PATH}?q=scheduler").status_code == 403


def test_the_page_answers_without_a_script_as_the_dialog_does(many, admin):
    page, part = admin.get(f"{PATH}?q=sched"), admin.get(f"{PATH}?q=sched", headers=HTMX)
    links = re.findall(r'<li><a href="([^"]+)"', text_of(page))
    assert links == re.findall(r'role="option"[^>]*href="([^"]+)"', text_of(part))
    assert f"/c/a/leases/{KEY}/" in links
    assert 'href="/c/a/leases/?q=sched">All Leases of a whose' in text_of(page), "the list"
    assert f'href="{PATH}" data-find' in text_of(admin.get("/c/a/leases/"))


def test_odd_text_breaks_nothing(many, admin):
    for text in ("<b>&'\"", "a/b/c", "/", "  ", "-", "%s \\", "\u017f \ufb01 \u0130", "a " * 500):
        answer = admin.get(PATH, {"q": text})
        assert answer.status_code == 200
        assert html.escape(text.strip())[:20] in text_of(answer)
        assert admin.get(PATH, {"q": text, "format": "json"}).status_code == 200


def test_text_that_nothing_can_have_is_refused_in_a_sentence(many, admin):
    for path in (f"{PATH}?q=a%00b", f"{PATH}?q={'x' * 1025}"):
        answer = admin.get(path)
        assert answer.status_code == 400
        assert "q cannot" in text_of(answer)
        assert "q cannot" in text_of(admin.get(path, headers=HTMX))


class Counted(str):
    """A text that counts how often it is searched."""

    __slots__ = ()
    searched = 0

    def find(self, *given):
        Counted.searched += 1
        return super().find(*given)


def test_a_keystroke_searches_a_text_few_times_among_very_many_names():
    """No walk: what is done for a text that all names have is bounded as well."""
    names = NameText(f"kube-node-lease/worker-{n}" for n in range(50_000))
    names.text = Counted(names.text)
    for words, most in ((["worker"], 5000), (["worker", "49999"], 5000), (["no-such"], 1)):
        Counted.searched = 0
        assert names.find(words).keys() <= {f"kube-node-lease/worker-{n}" for n in range(50_000)}
        assert Counted.searched <= most
    assert names.find(["worker", "49999"]) == {"kube-node-lease/worker-49999": 2}
