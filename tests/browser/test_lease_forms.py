"""The forms of an admin in Chromium, on Leases that live contenders hold and want."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Page, expect

from tests.browser.judgements import NEXT_FRAME
from tests.browser.sizes.long_names import names_seen
from tests.browser.visits import Visits
from tests.support.api_client import LeaseApi, leases, timestamp
from tests.support.processes import wait_for
from tests.support.programs.contender import contending

FORMS = "/c/embedded/leases/default/{}/{}/"


@pytest.fixture
def visits(signed_in: Visits) -> Iterator[Visits]:
    """A complaint in a console fails the test, but for refused forms."""
    yield signed_in
    refused = "Failed to load resource: the server responded with a status of 4"
    assert [one for one in signed_in.leave() if not one.startswith(refused)] == []


@pytest.fixture
def name(api: LeaseApi, request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of a Lease of this test alone."""
    one = re.sub(r"[^a-z0-9]+", "-", request.node.name.removeprefix("test_").lower())[:60].strip(
        "-"
    )
    yield one
    api.delete(one)


def spec_of(api: LeaseApi, name: str) -> dict[str, object]:
    spec: dict[str, object] = api.send("GET", f"{leases()}/{name}")["spec"]
    return spec


def known(visits: Visits, name: str, form: str, **options: object) -> Page:
    """A form, once the watch has reported its Lease."""
    page = visits.page(**options)

    def there() -> bool:
        answer = page.goto(visits.url + FORMS.format(name, form))
        return answer is not None and answer.ok

    wait_for(there, what=f"the form {form} of {name}")
    return page


@contextmanager
def renewing(api: LeaseApi, name: str, holder: str) -> Iterator[Callable[[], int]]:
    """A holder that renews every 200 ms; gives how often it did."""
    stop, times = threading.Event(), [0]

    def renew() -> None:
        while not stop.wait(0.2):
            api.patch(name, holderIdentity=holder, renewTime=timestamp())
            times[0] += 1

    thread = threading.Thread(target=renew)
    thread.start()
    try:
        yield lambda: times[0]
    finally:
        stop.set()
        thread.join()


def test_release_of_an_expired_lease_is_taken_by_a_contender(server, api, visits, name):
    api.create(name, holder="gone", duration=1)
    page = known(visits, name, "release")
    # It waits for its own duration after each change that it sees.
    with contending(server.kubeconfig, "default", name, "py-1", duration=12, deadline=9):
        wait_for(lambda: "probably gone" in again(page), what="the expiry on the form")
        expect(page.locator("#preview")).to_contain_text("holderIdentity: ''")
        page.get_by_label("Reason").fill("it is gone")
        page.get_by_role("button", name="Release Lease").click()
        expect(page.locator("#outcome h2")).to_contain_text("Released at")
        expect(page.locator("#outcome")).to_contain_text(
            re.compile(r"py-1 acquired it after [\d.]+ s")
        )
    assert spec_of(api, name)["holderIdentity"] == "py-1"


def again(page: Page) -> str:
    page.reload()
    return page.locator("[data-happens]").inner_text()


def test_release_of_a_live_lease_warns_and_then_says_what_happened(server, api, visits, name):
    with contending(server.kubeconfig, "default", name, "py-1", duration=3, deadline=2):
        wait_for(lambda: held(api, name), what="a held Lease")
        page = known(visits, name, "release")
        warned = "two may act at once for up to"
        wait_for(lambda: warned in again(page), what="a form read while it is held", every=0.5)
        expect(page.locator("[data-happens].is-late")).to_contain_text(warned)
        page.get_by_label("Reason").fill("drill")
        page.get_by_role("button", name="Release Lease").click()
        expect(page.locator("#outcome")).to_contain_text(
            re.compile(r"py-1 took it back after [\d.]+ s")
        )
        expect(page.locator("#outcome .feed li").first).to_contain_text(
            "was released through a form; last held by py-1"
        )


def held(api: LeaseApi, name: str) -> bool:
    items = api.send("GET", leases())["items"]
    return any(one["metadata"]["name"] == name for one in items)


def test_an_edit_succeeds_while_the_holder_renews_every_200_ms(api, visits, name):
    api.create(name, holder="cp-1", duration=15)
    with renewing(api, name, "cp-1") as times:
        page = known(visits, name, "edit")
        page.get_by_label("Duration").fill("30")
        page.get_by_role("button", name="Preview").last.click()
        expect(page.locator("#preview")).to_contain_text("others wait 30 s instead of 15 s")
        page.get_by_label("Reason").fill("drill")
        before = times()
        wait_for(lambda: times() > before + 2, what="renewals between preview and save")
        page.get_by_role("button", name="Save").click()
        expect(page.locator("#outcome")).to_contain_text("leaseDurationSeconds is 30.")
    assert spec_of(api, name)["leaseDurationSeconds"] == 30


def test_an_edit_after_the_holder_changed_steals_nothing_and_loses_no_text(api, visits, name):
    api.create(name, holder="cp-1", duration=15)
    page = known(visits, name, "edit")
    page.locator("#id_holder_identity").fill("cp-2")
    page.get_by_label("Reason").fill("the disk of cp-1 is full")
    page.get_by_role("button", name="Add label").click()
    page.get_by_label("Key of label 1").fill("team")
    page.get_by_label("Value of label 1").fill("a")
    api.take(name, holder="cp-9", transitions=1)
    page.get_by_role("button", name="Preview").last.click()
    expect(
        page.get_by_role("heading", name="The holder changed while you were editing")
    ).to_be_visible()
    row = page.locator(".versus tbody tr").first
    expect(row).to_contain_text("holderIdentity")
    expect(row).to_contain_text("cp-2")
    expect(row).to_contain_text("cp-9")
    assert spec_of(api, name)["holderIdentity"] == "cp-9"
    expect(page.locator("#id_holder_identity")).to_have_value("cp-2")
    expect(page.get_by_label("Reason")).to_have_value("the disk of cp-1 is full")
    expect(page.get_by_label("Value of label 1")).to_have_value("a")
    row.get_by_role("radio").last.check()  # theirs
    page.get_by_role("button", name="Continue with this choice").click()
    expect(page.locator("#id_holder_identity")).to_have_value("cp-9")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#outcome")).to_contain_text("labels/team is a.")
    assert spec_of(api, name)["holderIdentity"] == "cp-9"


@pytest.mark.parametrize(
    ("field", "typed", "said"),
    [
        ("preferred_holder", "cp-2", "may only be specified if"),
        ("acquire_time", "soon", "Write a time such as"),
        pytest.param("strategy", "not a strategy!", "", marks=pytest.mark.long),
        pytest.param(
            "duration_seconds", "0", "A duration is 1 second or more.", marks=pytest.mark.long
        ),
    ],
)
def test_errors_land_on_their_fields(api, visits, name, field, typed, said):
    api.create(name, holder="cp-1", duration=15)
    page = known(visits, name, "edit")
    page.locator(f"#id_{field}").fill(typed)
    page.get_by_role("button", name="Preview").last.click()
    expect(page.locator("#problems")).to_be_focused()
    control = page.locator(f"#id_{field}")
    expect(control).to_have_value(typed)
    expect(control).to_have_attribute("aria-invalid", "true")
    expect(page.locator(f"#id_{field}_error")).to_contain_text(said)
    assert f"id_{field}_error" in str(control.get_attribute("aria-describedby"))
    page.locator(f"#problems a[href='#id_{field}']").click()
    expect(control).to_be_in_viewport()


def test_an_edit_by_keyboard_alone(api, visits, name):
    api.create(name, holder="cp-1", duration=15)
    page = known(visits, name, "edit")
    page.locator("#main").press("Tab")
    reach(page, "#id_duration_seconds")
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("30")
    page.keyboard.press("Enter")  # the preview
    expect(page.locator("#preview")).to_contain_text("+   leaseDurationSeconds: 30")
    reach(page, "#id_reason")
    page.keyboard.type("drill")
    reach(page, "button[name=confirm]")
    page.keyboard.press("Enter")
    expect(page.locator("#outcome")).to_contain_text("leaseDurationSeconds is 30.")


def reach(page: Page, selector: str) -> None:
    """Press Tab until the element has the focus."""
    for _ in range(80):
        if page.evaluate("s => document.activeElement?.matches(s)", selector):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"no Tab leads to {selector}")


def test_an_edit_without_javascript(api, visits, name):
    api.create(name, holder="cp-1", duration=15)
    page = known(visits, name, "edit", java_script_enabled=False)
    page.get_by_role("button", name="Now for renew_time").click()
    expect(page.locator("#id_renew_time")).to_have_value("now")
    page.get_by_role("button", name="Add label").click()
    page.get_by_label("Key of label 1").fill("team")
    page.get_by_label("Value of label 1").fill("a")
    page.get_by_role("button", name="Preview").last.click()
    expect(page.locator("#preview")).to_contain_text("+     team: a")
    page.get_by_label("Reason").fill("drill")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#outcome")).to_contain_text("labels/team is a.")


def test_a_hand_over_to_a_former_holder(api, visits, name):
    api.create(name, holder="cp-1", duration=15, transitions=7)
    wait_for(lambda: known(visits, name, "hand-over"), what="the first holder in history")
    api.take(name, holder="cp-2", transitions=8)
    page = known(visits, name, "hand-over")

    def offered() -> bool:
        page.reload()
        return page.locator("input[name=to][value='cp-1']").count() == 1

    wait_for(offered, what="cp-1 as a former holder")
    page.locator("input[name=to][value='cp-1']").check()
    page.locator("[name=other]").fill("cp-3")
    expect(page.locator("input[name=to][value='']")).to_be_checked()
    page.locator("[name=other]").fill("")
    page.locator("input[name=to][value='cp-1']").check()
    page.get_by_role("button", name="Preview").last.click()
    expect(page.locator("#preview")).to_contain_text("transitions 8 to 9")
    page.get_by_label("Reason").fill("drill")
    page.get_by_role("button", name="Hand over", exact=True).click()
    expect(page.locator("#outcome h2")).to_contain_text("Handed over at")
    expect(page.locator("#outcome")).to_contain_text("cp-1 has not renewed it yet")
    spec = spec_of(api, name)
    assert (spec["holderIdentity"], spec["leaseTransitions"]) == ("cp-1", 9)
    assert spec["acquireTime"] == spec["renewTime"]


def test_former_holders_are_told_apart_by_what_differs_at_every_width(api, visits, name):
    pod, node = "a-rather-long-named-controller-manager", "gke-production-pool-1-8d3f2a11-x2vf"
    others = [f"{pod}-59d4c9cf7d-llbqz_{uuid}1b7e44" for uuid in ("8c2e41f0-", "9a57-2d9a3c")]
    others += [f"{node}.eu-central-1.internal_{tail}" for tail in ("a", "b")]
    api.create(name, holder="cp-1", duration=3600, transitions=1)
    for number, holder in enumerate([*others, "cp-2"], 2):
        api.take(name, holder=holder, transitions=number)
    page = known(visits, name, "hand-over")

    def offered() -> bool:
        page.reload()
        return page.locator("input[name=to]").count() == len(others) + 2  # cp-1, and another

    wait_for(offered, what="all former holders")
    for width in (390, 1440):
        page.set_viewport_size({"width": width, "height": 844})
        page.evaluate(NEXT_FRAME)
        seen = names_seen(page, ".pick .holder[title]")
        assert set(seen) == {"cp-1", *others}
        assert len(set(seen.values())) == len(seen)
        assert [one for one in others if not seen[one].endswith(one[-4:])] == []
    titles = [one.get_attribute("title") for one in page.locator(".pick .holder[title]").all()]
    assert set(titles) == {"cp-1", *others}


def test_yaml_shows_the_causes_at_their_lines(api, visits, name):
    api.create(name, holder="cp-1", duration=15)
    page = known(visits, name, "edit/yaml")
    editor = page.get_by_label("YAML", exact=True)
    shown = editor.input_value()
    expect(page.locator(".editor .lines li")).to_have_count(shown.count("\n") + 1)
    editor.fill(shown.replace("leaseDurationSeconds: 15", "leaseDurationSeconds: 0"))
    page.get_by_role("button", name="Preview").last.click()
    bad = page.locator(".yaml .ln.bad")
    expect(bad).to_contain_text("leaseDurationSeconds: 0")
    expect(page.locator(".cause-at")).to_contain_text("must be greater than 0")
    expect(page.locator(".editor .lines .bad")).to_have_count(1)
    editor.fill(shown.replace("leaseDurationSeconds: 15", "leaseDurationSeconds: 20"))
    page.get_by_role("button", name="Preview").last.click()
    expect(page.locator("#preview")).to_contain_text("+   leaseDurationSeconds: 20")
    page.get_by_label("Reason").fill("drill")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#outcome")).to_contain_text("leaseDurationSeconds is 20.")


def test_yaml_asks_before_it_leaves_out_a_mistyped_field(api, visits, name):
    api.create(name, holder="cp-1", duration=15)
    page = known(visits, name, "edit/yaml")
    editor = page.get_by_label("YAML", exact=True)
    editor.fill(editor.input_value().replace("leaseTransitions:", "leaseTransition:"))
    page.get_by_label("Reason").fill("drill")
    page.get_by_role("button", name="Preview").last.click()
    expect(page.locator(".yaml .ln.bad")).to_contain_text("leaseTransition:")
    expect(page.locator("#left-out")).to_contain_text("Did you mean spec.leaseTransitions?")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#problems")).to_contain_text("Nothing was written")
    page.get_by_label("Save without it").check()
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#outcome h2")).to_contain_text("at")
    assert "leaseTransitions" not in spec_of(api, name)


def test_what_a_delete_and_a_release_mean_follows_the_lease(api, visits, name):
    api.create(name, holder="", duration=15)
    pages = [known(visits, name, form) for form in ("delete", "release")]
    for page in pages:
        expect(page.locator("#means")).to_contain_text("Nobody holds it")
        page.get_by_label("Reason").fill("drill")
    api.take(name, holder="eve", transitions=1)
    for page in pages:
        expect(page.locator("#means")).not_to_contain_text("Nobody holds it")
        expect(page.get_by_label("Reason")).to_have_value("drill")


def test_a_double_click_writes_once(api, visits, name):
    api.create(name, holder="cp-1", duration=15)
    page = known(visits, name, "release")
    page.get_by_label("Reason").fill(f"twice {name}")
    before = int(api.send("GET", f"{leases()}/{name}")["metadata"]["resourceVersion"])
    page.get_by_role("button", name="Release Lease").dblclick()
    expect(page.locator("#outcome h2")).to_contain_text("Released at")
    after = int(api.send("GET", f"{leases()}/{name}")["metadata"]["resourceVersion"])
    assert after == before + 1
    page.goto(f"{visits.url}/audit/")
    expect(page.get_by_text(f"twice {name}")).to_have_count(1)
