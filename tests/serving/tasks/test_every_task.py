"""Nothing runs in the background unseen: every place that starts a task or a timer is listed here.

Who adds one lets the supervisor start it (see `dashboard.serving.tasks.supervisor`), or says here
who sees that it fails.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from dashboard.serving.tasks.supervisor import API_EFFECTS

ROOT = Path(__file__).resolve().parents[3]
STARTING = {
    "create_task", "ensure_future", "TaskGroup", "Thread", "Timer", "call_later", "call_at",
    "call_soon", "call_soon_threadsafe", "run_coroutine_threadsafe", "add_reader", "add_writer",
}  # fmt: skip

SEEN_BY = {
    # The tasks themselves.
    ("dashboard/serving/tasks/supervisor.py", "start"): "the supervisor",
    ("leases/apiserver/errors.py", "run_once"): "`lease_api` awaits it beside Ctrl-C",
    # It catches everything, and reports it to the supervisor.
    ("dashboard/live/consumers.py", "_take_part"): "_relay_or_close closes the socket, and counts",
    ("dashboard/live/shared_pages.py", "__init__"): "_run closes the sockets of its pages",
    ("dashboard/pages/nodes.py", "tick"): "_make reports it, and is tried again",
    ("dashboard/live/shared_drawings.py", "tick"): "_draw reports it, and is tried again",
    ("leases/apiserver/registry/namespaces.py", "_sweep_later"): "_sweep reports it, tries again",
    ("leases/apiserver/registry/events.py", "__init__"): "_run reports it, and goes on",
    ("leases/listener/server.py", "startup"): "Acceptor.run reports it, and goes on",
    ("leases/listener/server.py", "_has_connection"): "sets an event",
    ("leases/listener/server.py", "look_now"): "sets an event",
    ("leases/demo/electors.py", "after"): "wakes who waits in the demo's tasks",
    (
        "dashboard/serving/request_threads.py",
        "__call__",
    ): "awaited, except after the end of the process was asked for",
    ("leases/apiserver/watch/hub.py", "add"): "_tick reports it, and cuts the one watch",
    ("leases/apiserver/watch/hub.py", "_tick"): "_tick reports it, and cuts the one watch",
    (
        "leases/apiserver/storage/journal.py",
        "_schedule",
    ): "_submit reports it, the writes fail",
    ("leases/apiserver/storage/journal.py", "done"): "_committed reports it",
    ("leases/apiserver/storage/journal.py", "open"): "_run hands every failure to who waits",
    ("dashboard/serving/tasks/incidents.py", "_rest"): "sets an event",
    ("dashboard/serving/tasks/history_upkeep.py", "count_in_time"): "logs",
    ("leases/tracking/shared_timer.py", "collect"): "_tell starts each by itself",
    ("leases/tracking/shared_timer.py", "_tell"): "TimerErrors fails the watch",
    ("leases/tracking/shared_timer.py", "_plan"): "_beat starts each by itself",
    ("leases/tracking/shared_timer.py", "_beat"): "TimerErrors fails the watch",
    ("dashboard/access/ended_rights.py", "look_now"): "sets an event",
    ("dashboard/access/ended_rights.py", "renewing"): "the next look closes what it left",
    ("dashboard/serving/tasks/admin_writes.py", "wake"): "sets an event",
    ("dashboard/serving/tasks/added_clusters.py", "wake"): "sets an event",
    ("dashboard/serving/tasks/notifications.py", "_look"): "the next look raises what failed",
    # Whoever started it awaits it.
    ("leases/actions/deletion_runs.py", "run"): "the group of tasks, which the run awaits",
    ("dashboard/serving/request_threads.py", "one"): "the request awaits it",
    ("leases/kube/lease_client.py", "list"): "list awaits the page",
    ("leases/kube/reflector.py", "read"): "follow awaits the reading",
    ("leases/kube/open_watch.py", "_newest_unless_data_comes"): "it awaits or cancels the question",
    ("leases/kube/evidence.py", "answer"): "answer awaits the group of tasks",
    ("leases/kube/holder_pods.py", "ask"): "the page that asks awaits the group of tasks",
    ("dashboard/serving/tasks/secret_clusters.py", "run"): "run awaits the group of tasks",
    ("leases/demo/run.py", "run_demo"): "the group of tasks, which the demo's task awaits",
    ("leases/bounded_connection.py", "bounded"): "passes bytes on; the block awaits its end",
    ("leases/history/database.py", "run"): "run awaits the look; the last task only closes",
    ("leases/worker_threads.py", "find"): "whoever asks awaits it",
    ("leases/worker_threads.py", "end_after_signals"): "waits for a signal, then ends the process",
    ("leases/worker_threads.py", "_end_in_time"): "logs, just before the end of the process",
    ("dashboard/management/commands/lease_api.py", "_serve"): "the command awaits it",
    # One client's connection: asyncio logs what fails, and the client comes again.
    ("leases/apiserver/watch/stream.py", "_stream"): "ends with the request; see _left",
    ("leases/apiserver/http/port.py", "welcome"): "not yet handed over to a protocol",
    ("leases/apiserver/http/port.py", "_first_byte"): "sets an event",
    ("leases/listener/protocol.py", "connection_made"): "cuts it",
    ("leases/listener/protocol.py", "_check_limits"): "cuts it",
    ("leases/listener/protocol.py", "hang_up"): "cuts it",
    ("leases/listener/limits.py", "begin"): "cuts it",
    ("leases/listener/limits.py", "close"): "cuts it",
}


# Places that start more than one.
TIMES = {
    ("dashboard/serving/tasks/secret_clusters.py", "run"): 3,
    ("leases/actions/deletion_runs.py", "run"): 2,  # the group, and the task in it
    ("leases/apiserver/storage/journal.py", "_schedule"): 2,
    ("leases/bounded_connection.py", "bounded"): 2,
    ("dashboard/management/commands/lease_api.py", "_serve"): 2,
    ("leases/demo/run.py", "run_demo"): 3,
    ("leases/history/database.py", "run"): 2,
    ("leases/kube/evidence.py", "answer"): 2,
    ("leases/kube/holder_pods.py", "ask"): 2,
}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def starts(node: ast.AST, function: str = "") -> Iterator[str]:
    """The function around each call that starts a task or a timer."""
    for child in ast.iter_child_nodes(node):
        inner = child.name if isinstance(child, FUNCTIONS) else function
        if isinstance(child, ast.Call) and _called(child) in STARTING:
            yield function
        yield from starts(child, inner)


def _called(call: ast.Call) -> str:
    match call.func:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""


@cache
def trees() -> list[tuple[Path, ast.Module]]:
    """To parse all modules takes most of the time of these tests."""
    modules = [path for room in ("leases", "dashboard") for path in (ROOT / room).rglob("*.py")]
    return [(path, ast.parse(path.read_text())) for path in modules]


@cache
def found() -> Counter[tuple[str, str]]:
    return Counter(
        (str(path.relative_to(ROOT)), function)
        for path, tree in trees()
        for function in starts(tree)
    )


def test_every_task_and_timer_is_supervised_or_seen() -> None:
    unseen = {
        place: times
        for place, times in found().items()
        if place not in SEEN_BY or times > TIMES.get(place, 1)
    }
    assert not unseen, "start it with the supervisor, or say in SEEN_BY who sees that it fails"


def test_nothing_is_listed_that_is_gone() -> None:
    assert sorted(SEEN_BY.keys() - found()) == []


API, WRITER = "a cluster's API", "the writer of history"
UPKEEP = "reliability, retention, rights of open pages"
REGIONS, REQUESTS = "regions of pages, the order of Nodes", "pages, health, forms, sign-in"
EMBEDDED = "large bodies and gzip of the embedded API; its start and end"
JOURNAL = "writes of the embedded API"
NOBODY = "the clock, frames of open pages, the demo, elections of the embedded API"
NAMES = "the look-up of a receiver's or a cluster's name"
# Each background task and each pool, with its row of the table in docs/decisions.md.
WAITS = {
    "watch": (API,), "version": (API,), "nodes": (API, REGIONS), "evidence": (API,),
    "deletions": (API, WRITER),
    "audit": (API, WRITER), "recorder": (WRITER,), "history": (WRITER,), "overrides": (WRITER,),
    "wall link use": (WRITER,), "start": (WRITER,), "incidents": ("a review of incidents",),
    "notifications": ("a receiver over HTTP", "a mail server"),
    "receiver-names": (NAMES,), "cluster-names": (NAMES,), "rights": (UPKEEP,),
    "reliability": (UPKEEP,), "retention": (UPKEEP,), "forgetting": (UPKEEP,),
    "regions": (REGIONS,), "fleet": (REGIONS,),
    "health": (REQUESTS,), "pages": (REQUESTS,), "sign-in": (REQUESTS,),
    "known-sign-in": (REQUESTS,), "database": ("the look whether the database answers",),
    "memory": ("giving freed memory back",), "cluster secrets": (API,), "added clusters": (WRITER,),
    "one-lease": (REQUESTS,), "lease-api-bodies": (EMBEDDED,), "lease-api-gzip": (EMBEDDED,),
    "lease-api-disk": (EMBEDDED,), "lease-api": (EMBEDDED,), "lease-api-journal": (JOURNAL,),
    "clock": (NOBODY,),
    "publisher": (NOBODY,), "renewals": (NOBODY,), "demo": (NOBODY,), "elections": (NOBODY,),
    "end": ("the end of the process",),
}  # fmt: skip
POOLS = {
    "WorkerThreads",
    "NameLookups",
    "ThreadPoolExecutor",
    "Threads",
    "Thread",
    "start",
    "checks",
}


def named() -> Iterator[str]:
    """The names of the tasks that the supervisor starts, and of the pools."""
    yield from API_EFFECTS
    for _, tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and _called(node) in POOLS:
                known = ("name", "thread_name_prefix")
                given = [one.value for one in node.keywords if one.arg in known]
                for one in (*node.args[:1], *given):
                    first = one.values[0] if isinstance(one, ast.JoinedStr) else one
                    if isinstance(first, ast.Constant) and isinstance(first.value, str):
                        yield first.value.strip()


def test_no_module_of_ours_asks_for_shared_threads() -> None:
    """See tests/serving/test_shared_threads.py."""
    asking = []
    for path, tree in trees():
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            name = _called(call)
            shared = name in ("to_thread", "set_default_executor", "getnameinfo") or (
                name == "run_in_executor" and ast.unparse(call.args[0]) == "None"
            )
            sensitive = any(
                one.arg == "thread_sensitive" and ast.unparse(one.value) != "True"
                for one in call.keywords
            )
            looked_up = name == "getaddrinfo" and ast.unparse(call.func) != "socket.getaddrinfo"
            if shared or sensitive or looked_up:
                asking.append(f"{path.relative_to(ROOT)}:{call.lineno}")
    assert asking == []


def test_what_can_hang_is_listed_with_its_bound() -> None:
    text = (ROOT / "docs/decisions.md").read_text().partition("| what waits |")[2]
    rows = [line.split("|")[1].strip() for line in text.partition("\n\n")[0].splitlines()[2:]]
    assert set(named()) == set(WAITS), "say in WAITS and docs/decisions.md what it waits for"
    assert {row for named in WAITS.values() for row in named} == set(rows)


def test_a_new_task_is_found() -> None:
    text = "class A:\n    async def begin(self):\n        asyncio.create_task(self.work())\n"
    assert list(starts(ast.parse(text))) == ["begin"]
