"""The quick way of a plain renewal answers as the general way does, and takes no write that is
more than that.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from leases.apiserver import renewal_protocol, renewing
from leases.apiserver.handlers import Handlers
from leases.apiserver.request import Request
from leases.apiserver.serving import LeaseApiServer
from tests.apiserver.clients import ADMIN, LEASES, lease
from tests.apiserver.streams import exchange, request

Object = dict[str, Any]
HELD = {
    "holderIdentity": "pod-1_a",
    "leaseDurationSeconds": 15,
    "acquireTime": "2026-11-21T10:00:00.000000Z",
    "renewTime": "2026-11-21T10:00:00.000001Z",
    "leaseTransitions": 3,
}
OWNER = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "u1", "controller": True}
NEXT = "2026-11-21T10:00:02.000001Z"


def set_spec(**values: Any) -> Callable[[Object], bytes]:
    def body(found: Object) -> bytes:
        found["spec"] |= values
        return json.dumps(found, ensure_ascii=False).encode()

    return body


def set_metadata(**values: Any) -> Callable[[Object], bytes]:
    def body(found: Object) -> bytes:
        found["metadata"] |= values
        found["spec"]["renewTime"] = NEXT
        return json.dumps(found).encode()

    return body


def without(*path: str) -> Callable[[Object], bytes]:
    def body(found: Object) -> bytes:
        found["spec"]["renewTime"] = NEXT
        inner = found
        for name in path[:-1]:
            inner = inner[name]
        del inner[path[-1]]
        return json.dumps(found).encode()

    return body


def replaced(old: str, new: str, *more: tuple[str, str]) -> Callable[[Object], bytes]:
    """The body of a renewal with texts in it changed."""

    def body(found: Object) -> bytes:
        found["spec"]["renewTime"] = NEXT
        text = json.dumps(found)
        for before, after in ((old, new), *more):
            assert before in text
            text = text.replace(before, after, 1)
        return text.encode("utf-8", "surrogatepass")

    return body


PLAIN = {
    "renewed": set_spec(renewTime=NEXT),
    "every field anew": set_spec(
        holderIdentity="é<b>",
        leaseDurationSeconds=1,
        acquireTime=NEXT,
        renewTime=NEXT,
        leaseTransitions=0,
    ),
    "released": set_spec(holderIdentity="", leaseDurationSeconds=1),
    "without kind": without("kind"),
    "minus nothing": replaced('"leaseTransitions": 3', '"leaseTransitions": -0'),
}
OTHER = {
    "without managedFields": without("metadata", "managedFields"),
    "nothing new": set_spec(),
    "a new field": set_spec(preferredHolder="x"),
    "a field gone": without("spec", "leaseTransitions"),
    "no time": set_spec(renewTime=None),
    "a time to normalize": set_spec(renewTime="2026-11-21T12:00:02.000001+02:00"),
    "the zero time": set_spec(renewTime="0001-01-01T00:00:00.000000Z"),
    "no such day": set_spec(renewTime="2026-02-30T10:00:00.000000Z"),
    "too short a duration": set_spec(leaseDurationSeconds=0),
    "too large a duration": set_spec(leaseDurationSeconds=2**31),
    "negative transitions": set_spec(leaseTransitions=-1),
    "a number with a point": set_spec(leaseTransitions=4.0),
    "truth for a number": set_spec(leaseTransitions=True),
    "a number for a holder": set_spec(holderIdentity=7),
    "an escape": replaced("pod-1", "\\u0070od-2"),
    "half a surrogate": replaced("pod-1", "\ud800"),
    "a name twice": replaced('"leaseTransitions": 3', '"leaseTransitions": 9, "renewTime": null'),
    "a name twice, the same": replaced(
        '"leaseTransitions": 3', '"leaseTransitions": 4, "leaseTransitions": 4'
    ),
    "an unknown field": replaced('"leaseTransitions": 3', '"leaseTransitions": 4, "more": 1'),
    "an unknown field outside": replaced('"spec":', '"status": {}, "spec":'),
    "no JSON": replaced('"leaseTransitions": 3', '"leaseTransitions": 03'),
    "another version": set_metadata(resourceVersion="1"),
    "no version": set_metadata(resourceVersion=""),
    "another uid": set_metadata(uid="another"),
    "labels": set_metadata(labels={"tier": "one"}),
    "one for true": set_metadata(ownerReferences=[OWNER | {"controller": 1}]),
    "owners twice": set_metadata(ownerReferences=[OWNER, OWNER]),
    "no managedFields at all": set_metadata(managedFields=[{}]),
    "another kind": replaced('"kind": "Lease"', '"kind": "Least"'),
    "another name": set_metadata(name="another"),
    "no spec": without("spec"),
    "no metadata": without("metadata"),
}


# Fewer quotes in the holder make up for those that should not be there.
HOLDER = '"holderIdentity": "pod-1\\"_\\"a"'
HIDING = {
    "a name twice": replaced(HOLDER, '"holderIdentity": "pod-1_a", "leaseTransitions": 4'),
    "no kind": replaced(HOLDER, '"holderIdentity": "pod-1_a"', ('"kind": "Lease"', '"kind": 5')),
}


# Headers that no two answers have alike.
ITS_OWN = (b"date:", b"audit-id:", b"content-length:")


async def put(api: LeaseApiServer, body: Callable[[Object], bytes], **spec: str) -> tuple[Any, ...]:
    """Create a Lease, put `body` of it back; the answer and what is stored then, less the names
    and times of this one try.
    """
    made = lease("held", **HELD | spec)
    made["metadata"]["ownerReferences"] = [OWNER]
    await exchange(api.url, request("DELETE", f"{LEASES}/held"))
    _, _, created = await exchange(api.url, request("POST", LEASES, made))
    asked = request("PUT", f"{LEASES}/held", body(copy.deepcopy(created)))
    status, head, answer = await exchange(api.url, asked)
    _, _, stored = await exchange(api.url, request("GET", f"{LEASES}/held"))
    told = [line for line in head.lower().split(b"\r\n") if not line.startswith(ITS_OWN)]
    meta = created["metadata"]
    known = {meta["resourceVersion"]: "RV", meta["creationTimestamp"]: "T"}
    moved = stored["metadata"]["resourceVersion"] != meta["resourceVersion"]

    def anonymous(found: Object) -> str:
        text = json.dumps(found).replace(meta["uid"], "UID")
        for old, new in known.items():
            text = text.replace(f'"{old}"', f'"{new}"')
        return text

    if moved:
        known[stored["metadata"]["resourceVersion"]] = "NEXT"
    for entry in stored["metadata"].get("managedFields", []):
        known[entry["time"]] = "T"
    return status, told, anonymous(answer), anonymous(stored)


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each PUT went the quick way."""
    seen: list[bool] = []
    quick, general = renewing.Renewals.begin, Handlers.handle

    def begin(self: renewing.Renewals, *asked: Any) -> bool:
        begun = quick(self, *asked)
        if begun:
            seen.append(True)
        return begun

    async def handle(self: Handlers, asked: Request, *more: Any) -> None:
        if asked.method == "PUT":
            seen.append(False)
        await general(self, asked, *more)

    monkeypatch.setattr(renewing.Renewals, "begin", begin)
    monkeypatch.setattr(Handlers, "handle", handle)
    return seen


async def both_ways(
    api: LeaseApiServer,
    monkeypatch: pytest.MonkeyPatch,
    body: Callable[[Object], bytes],
    **spec: str,
) -> tuple[Any, Any]:
    quick = await put(api, body, **spec)
    with monkeypatch.context() as patch:
        patch.setattr(renewal_protocol, "asked_of", lambda *_: None)
        return quick, await put(api, body, **spec)


async def test_a_plain_renewal_is_served_the_quick_way(
    api: LeaseApiServer, taken: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, body in PLAIN.items():
        taken.clear()
        quick, general = await both_ways(api, monkeypatch, body)
        assert (name, quick) == (name, general)
        assert (name, taken) == (name, [True, False])


async def test_any_other_write_goes_the_general_way(
    api: LeaseApiServer, taken: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, body in OTHER.items():
        taken.clear()
        quick, general = await both_ways(api, monkeypatch, body)
        assert (name, quick) == (name, general)
        assert (name, taken) == (name, [False, False])


TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\w.-]+|\S')
SPOILT = ("null", "true", "1", "1.0", '"x"', "{}", "[]", '"a": 1, "a"', '""', ",")


def spoilt(at: int, new: str) -> Callable[[Object], bytes]:
    """The body of a renewal with one token in it replaced."""

    def body(found: Object) -> bytes:
        found["spec"]["renewTime"] = NEXT
        tokens = TOKEN.findall(json.dumps(found))
        tokens[at % len(tokens)] = new
        return " ".join(tokens).encode()

    return body


async def test_whatever_is_spoilt_both_ways_judge_alike(
    api: LeaseApiServer, taken: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = 180
    for at in range(tokens):
        new = SPOILT[at * 7 % len(SPOILT)]
        quick, general = await both_ways(api, monkeypatch, spoilt(at, new))
        assert (at, new, quick) == (at, new, general)
    assert taken.count(True) < tokens / 2


async def test_a_missing_quote_hides_nothing(
    api: LeaseApiServer, taken: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, body in HIDING.items():
        taken.clear()
        quick, general = await both_ways(api, monkeypatch, body, holderIdentity='pod-1"_"a')
        assert (name, quick) == (name, general)
        assert (name, taken) == (name, [False, False])


@pytest.mark.parametrize(
    "more",
    [{"accept": "application/yaml"}, {"dryRun": "All"}, {"fieldManager": "me"}, {"pretty": "1"}],
)
async def test_who_asks_for_more_is_served_the_general_way(
    more: dict[str, str], api: LeaseApiServer, taken: list[bool]
) -> None:
    asked = request("PUT", f"{LEASES}/held", set_spec(renewTime=NEXT)({"spec": {}}), **more)
    await exchange(api.url, asked, decode=False)
    assert taken == [False]


async def test_another_manager_takes_its_fields_over(
    api: LeaseApiServer, taken: list[bool]
) -> None:
    _, _, found = await exchange(api.url, request("POST", LEASES, lease("held", **HELD)))
    found["spec"]["renewTime"] = NEXT
    asked = request("PUT", f"{LEASES}/held", found).replace(
        b"Host: x\r\n", b"Host: x\r\nUser-Agent: other/1\r\n"
    )
    status, _, found = await exchange(api.url, asked)
    assert status == 200
    owners = {entry["manager"]: entry["fieldsV1"] for entry in found["metadata"]["managedFields"]}
    assert owners["other"] == {"f:spec": {"f:renewTime": {}}}
    assert "f:renewTime" not in owners["unknown"]["f:spec"]
    assert taken == [False]


async def test_who_may_not_write_is_refused(api: LeaseApiServer, taken: list[bool]) -> None:
    for token, status in (("viewer-token", 403), ("stranger", 401)):
        asked = request("PUT", f"{LEASES}/held", {}).replace(ADMIN.encode(), token.encode())
        assert (await exchange(api.url, asked))[0] == status
