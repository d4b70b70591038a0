"""A start with a wrong clock deletes nothing and moves nothing; the right one goes on with all."""

from __future__ import annotations

import json
import sqlite3
import time
from contextlib import closing
from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async

from dashboard.serving.tasks.clock_watch import ClockTrust, ClockWatch
from dashboard.serving.tasks.history_upkeep import Forgetting
from leases import models
from leases.domain.steady_clock import SteadyClock
from leases.history import deliveries, trusted_clock
from leases.history.reliability import counted_until, finish_day, reopen
from tests.serving.tasks.stepped_board import moment
from tests.support.api_client import LeaseApi
from tests.support.processes import Server, ended, environment, manage, start_python, wait_for
from tests.support.recording import in_thread
from tests.support.signing_in import signed_in
from tests.support.values.changes import T0
from tests.support.values.receivers import a_receiver

DAY = timedelta(days=1)
FAR = 400 * 86_400
PROGRAM = ("-m", "tests.serving.tasks.stepped")
SAID = "Nothing is deleted for its age"
FIRST_ALONE = "the last moment of a clock that is trusted is"
# A history of 60 days, as it was stored by a right clock up to some seconds ago.
HISTORY = """
from datetime import timedelta
from django.utils import timezone
from leases import models
from leases.history.reliability import finish_day
from tests.support.values.change_rows import to_row
from tests.support.values.changes import a_change

now = timezone.now()
for day in range(60):
    at = now - timedelta(days=day, minutes=5)
    to_row(a_change(cluster="embedded", at=at, observed_at=at, resource_version=str(day))).save()
    models.SecurityRecord.objects.create(at=at, event="sign_in", who="ada")
    models.RefusedRow.objects.create(
        at=at, cluster="embedded", what="change", error="x", content="", digest=str(day))
one = models.Receiver.objects.create(name="ops", sort="webhook", sealed="", choice="{}",
                                     created_at=now, enabled=False)
models.Notification.objects.create(
    receiver=one, cluster="embedded", incident="i", step=0, stage="opened", content="{}",
    made_at=now, due_at=now, ended_at=now, state="sent")
models.WatchSpan.objects.create(
    cluster="embedded", process="p", since=now - timedelta(days=60), until=now, ended="stopped")
"""
TABLES = ("change", "securityrecord", "notification", "refusedrow", "watchspan", "reliability")


def kept(data):
    """How many rows of each table are of the right time, and the progress of reliability."""
    with closing(sqlite3.connect(data / "leaseboard.sqlite3")) as database:
        names = [name for (name,) in database.execute("SELECT name FROM sqlite_master")]
        numbers = {}
        for table in TABLES:
            (name,) = [one for one in names if one == f"leases_{table}"]
            numbers[table] = database.execute(f"SELECT count(*) FROM {name}").fetchone()[0]  # noqa: S608
        progress = database.execute("SELECT day FROM leases_reliabilityprogress").fetchall()
        counted = database.execute("SELECT max(until) FROM leases_reliability").fetchone()
    return numbers, progress, counted


def started(data, ahead=0, server=None):
    return Server(data, "--no-demo", program=PROGRAM, AHEAD=str(ahead), bare=True)


def command(data, name, ahead, tmp_path):
    with (tmp_path / "out").open("w+") as out:
        program = (*PROGRAM, name)
        process = start_python(
            *program, env=environment(data, AHEAD=str(ahead)), stdout=out, stderr=out
        )
        code = process.wait(timeout=60)
        return code, (tmp_path / "out").read_text()


@pytest.mark.long
def test_wrong_starts_lose_nothing_and_a_right_one_goes_on(tmp_path):
    data = tmp_path / "data"
    with ended(Server(data, "--no-demo")) as server:
        LeaseApi(server.kubeconfig).create("steady", holder="h", duration=3600)
        assert server.interrupt() == 0
    assert manage(data, "shell", "-c", HISTORY).returncode == 0
    with ended(started(data)) as server:
        wait_for(lambda: kept(data)[1] and kept(data)[2][0], what="the first count")
        assert server.interrupt() == 0
    before, progress, counted = kept(data)
    for ahead in (FAR, -FAR, -int(time.time())):
        with ended(started(data, ahead)) as server:
            server.wait_synced()
            wait_for(lambda: "No old changes are forgotten" in server.text, what="retention")
            browser = signed_in(server)
            with browser.open(f"{server.url}/c/embedded/", timeout=60) as answer:
                assert SAID in answer.read().decode()
            assert server.interrupt() == 0
        now, moved, again = kept(data)
        assert all(now[table] >= before[table] for table in TABLES), ahead
        assert (moved, again) == (progress, counted)
        if ahead == -FAR:
            continue  # the commands say of it what they say of 1970
        code, told = command(data, "doctor", ahead, tmp_path)
        assert code == 1
        assert FIRST_ALONE in told
    with ended(started(data)) as server:
        server.wait_synced()
        wait_for(lambda: kept(data)[2] > counted, what="the next count")
        browser = signed_in(server)
        with browser.open(f"{server.url}/c/embedded/leases/?format=json", timeout=60) as answer:
            answered = json.load(answer)
        [steady] = [one for one in answered["items"] if one["name"] == "steady"]
        assert moment(steady["observed_at"]) <= moment(answered["now"])
        with browser.open(f"{server.url}/c/embedded/", timeout=60) as answer:
            assert SAID not in answer.read().decode()
        assert server.interrupt() == 0
    now, progress_now, _ = kept(data)
    assert all(now[table] >= before[table] for table in TABLES)
    assert progress_now >= progress
    # A person confirms a clock that history contradicts.
    code, told = command(data, "confirm_clock", FAR, tmp_path)
    assert code == 0, told
    assert "The last moment of a trusted clock is" in told
    with ended(started(data, FAR)) as server:
        wait_for(lambda: kept(data)[0]["notification"] == 0, what="the message to be forgotten")
        wait_for(lambda: "Forgot" in server.text, what="changes to be forgotten")
        assert SAID not in server.text
        assert server.interrupt() == 0


class Machine:
    """A wall clock and the time that passes, as a test sets them."""

    def __init__(self, monkeypatch):
        self.wall = self.passed = 0
        self.others_agree = False
        self.clock = SteadyClock(wall=lambda: self.wall, passed=lambda: self.passed)
        monkeypatch.setattr("dashboard.serving.tasks.clock_watch.passed", lambda: self.passed)

    def begin(self, now):
        self.wall = int(now.timestamp()) * 10**9
        self.clock = SteadyClock(wall=lambda: self.wall, passed=lambda: self.passed)
        watch = ClockWatch(self.clock, passed=lambda: self.passed, running=lambda: self.passed)
        return ClockTrust(watch, in_thread, "me", lambda _: self.others_agree)

    def goes_on(self, by):
        self.wall += int(by.total_seconds()) * 10**9
        self.passed += int(by.total_seconds()) * 10**9


@pytest.fixture
def machine(db, monkeypatch):
    return Machine(monkeypatch)


@pytest.mark.django_db(transaction=True)
async def test_a_clock_is_trusted_as_far_as_the_process_explains_it(machine):
    assert await machine.begin(T0).look()
    assert await machine.begin(T0 + 0.9 * DAY).look()
    assert not await machine.begin(T0 + 2 * DAY).look()
    assert not await machine.begin(T0 - 2 * DAY).look()
    trust = machine.begin(T0 + DAY)
    machine.goes_on(30 * DAY)  # without a database, say
    assert await trust.look()
    assert trust.says is None
    assert await sync_to_async(trusted_clock.trusted_until)() > T0 + 30.9 * DAY
    later = machine.begin(T0 + 100 * DAY)
    assert not await later.look()
    assert "the last moment of a clock that is trusted is" in later.says
    assert "manage.py confirm_clock" in later.says
    machine.others_agree = True
    assert await later.look()
    assert later.says is None


@pytest.mark.django_db(transaction=True)
async def test_a_history_of_before_is_compared_with_what_others_watched(machine):
    spans = {"other": T0, "me": T0 + 400 * DAY}
    for process, until in spans.items():
        await models.WatchSpan.objects.acreate(
            cluster="a", process=process, since=T0, until=until, ended=""
        )
    assert not await machine.begin(T0 + 400 * DAY).look()
    await models.WatchSpan.objects.acreate(
        cluster="a", process="wrong", since=T0, until=T0 + 401 * DAY, ended="stopped"
    )
    assert await machine.begin(T0 + timedelta(hours=1)).look()


@pytest.mark.django_db(transaction=True)
async def test_nothing_is_forgotten_or_reopened_by_a_doubtful_clock():
    async def doubtful():
        return False

    await models.SecurityRecord.objects.acreate(at=T0 - 400 * DAY, event="sign_in", who="ada")
    recorder = type("Recorder", (), {"in_thread": staticmethod(in_thread)})()
    assert await Forgetting(recorder, days=1, rows=1, trusted=doubtful).run(T0) == 0
    assert await models.SecurityRecord.objects.aexists()
    await sync_to_async(trusted_clock.trust)(T0)
    await models.WatchSpan.objects.acreate(
        cluster="a", process="p", since=T0 - 9 * DAY, until=T0, ended="stopped"
    )
    await sync_to_async(finish_day)("a", (T0 - DAY).date())
    day = await sync_to_async(counted_until)("a")
    early = T0 + 3 * DAY
    await sync_to_async(reopen)("a", [early - 6 * DAY], early)
    assert await sync_to_async(counted_until)("a") == day
    await sync_to_async(reopen)("a", [T0 - 5 * DAY], T0)
    assert await sync_to_async(counted_until)("a") < day


@pytest.mark.django_db(transaction=True)
def test_what_a_clock_far_ahead_put_off_is_sent_at_once():
    far = T0 + 400 * DAY
    one = a_receiver(retry_at=far, failures=3)
    message = {"receiver": one, "cluster": "a", "incident": "i", "stage": "test"}
    content = json.dumps(
        {
            "id": "m", "stage": "test", "cluster": "a", "incident": "i", "cause": "unknown",
            "confidence": "certain", "severity": "info", "sentence": "x", "began": T0.isoformat(),
            "ended": None, "leases": [], "leases_total": 0, "hosts": [], "hosts_total": 0,
            "worst_gap_seconds": None,
        }
    )  # fmt: skip
    row = models.Notification.objects.create(
        **message, step=0, content=content, made_at=far, due_at=far, claimed_until=far
    )
    [delivery] = deliveries.claim("me", T0)
    assert delivery.rows == (row.pk,)
    deliveries.finish(delivery, "me", far + 400 * DAY, error="away", may_give_up=False)
    assert models.Notification.objects.get().state == "waiting"
    deliveries.finish(delivery, "me", far + 400 * DAY, error="away")
    assert models.Notification.objects.get().state == "failed"
