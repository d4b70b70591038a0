"""Events, in the core group and in events.k8s.io, and how they expire.

Source: pkg/apis/core/validation/events.go, pkg/apis/events/v1/conversion.go,
pkg/registry/core/event/strategy.go, pkg/printers/internalversion/printers.go (printEvent).

After a restart the hour begins anew: the store does not know when its objects were written.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from leases.apiserver.codec.schema import CORE_EVENT, EVENT
from leases.apiserver.errors import Failed, required
from leases.apiserver.registry.pods_and_nodes import selects_text, text
from leases.apiserver.registry.validation import path_segment_errors
from leases.apiserver.resources import NAME, Column, Conversion, Resource, Selectable
from leases.apiserver.storage.journal import Version
from leases.apiserver.storage.store import ObjectStore, Plan
from leases.wire.name_rules import qualified_name_errors, subdomain_errors
from leases.wire.status import StatusCause, bad_value, go_quote

Object = dict[str, Any]
GROUP = "events.k8s.io"
_SHORT, _NOTE = 128, 1024
_RENAMED = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_CORE_NAMES = {new: old for old, new in _RENAMED.items()}
# What an update through events.k8s.io may not change.
_IMMUTABLE = (
    "involvedObject", "reason", "message", "source", "firstTimestamp", "lastTimestamp", "count",
    "reason", "type", "eventTime", "action", "related", "reportingComponent", "reportingInstance",
)  # fmt: skip

_PATHS = {"reportingComponent": "reportingController"}


def _outward(obj: Object) -> Object:
    return _ordered({_RENAMED.get(name, name): value for name, value in obj.items()}, EVENT.fields)


def _inward(obj: Object) -> Object:
    found = {_CORE_NAMES.get(name, name): value for name, value in obj.items()}
    series = found.get("series")
    if series is not None and not series["count"]:
        found["series"] = {name: value for name, value in series.items() if name != "count"}
    return _ordered(found, CORE_EVENT.fields)


def _ordered(found: Object, fields: dict[str, Any]) -> Object:
    always = (name for name, field in fields.items() if field.always and name not in found)
    found |= {name: fields[name].zero for name in always}
    empty = [name for name, value in found.items() if value in ("", 0) and not fields[name].always]
    return {name: found[name] for name in fields if name in found and name not in empty}


def _errors(new: Object, old: Object | None, *, strict: bool = False) -> list[StatusCause]:
    """`strict`: the request came through events.k8s.io."""
    wrong = _old_style_errors(new) if new["eventTime"] is None else _new_style_errors(new)
    namespace = new["metadata"].get("namespace", "")
    wrong += [
        bad_value("namespace", go_quote(namespace), why) for why in subdomain_errors(namespace)
    ]
    if not strict:
        return wrong
    if old is None:
        return wrong + _series_errors(new) + _creation_errors(new)
    if new.get("series") != old.get("series"):
        wrong += _series_errors(new)
    return wrong + [
        bad_value(_PATHS.get(name, name), _shown(new.get(name)), "field is immutable")
        for name in _IMMUTABLE
        if new.get(name) != old.get(name)
    ]


def _shown(value: Any) -> str:
    return go_quote(value) if isinstance(value, str) else msgspec.json.encode(value).decode()


def _old_style_errors(new: Object) -> list[StatusCause]:
    namespace, about = (
        new["metadata"].get("namespace", ""),
        text(new, "involvedObject", "namespace"),
    )
    if about == namespace or (not about and namespace == "default"):
        return []
    return [_foreign(about)]


def _foreign(about: str) -> StatusCause:
    return bad_value("involvedObject.namespace", go_quote(about), "does not match event.namespace")


def _new_style_errors(new: Object) -> list[StatusCause]:
    wrong: list[StatusCause] = []
    about, controller = text(new, "involvedObject", "namespace"), new["reportingComponent"]
    if not about and new["metadata"].get("namespace") not in ("default", "kube-system"):
        wrong.append(_foreign(about))
    if not controller:
        wrong.append(required("reportingController"))
    wrong += [
        bad_value("reportingController", go_quote(controller), why)
        for why in qualified_name_errors(controller)
    ]
    for name, limit in (("reportingInstance", _SHORT), ("action", _SHORT), ("reason", _SHORT)):
        given = new.get(name, "")
        wrong += _length_errors(name, given, limit) if given else [required(name)]
    return wrong + _length_errors("message", new.get("message", ""), _NOTE)


def _length_errors(name: str, given: str, limit: int) -> list[StatusCause]:
    if len(given.encode()) <= limit:
        return []
    return [bad_value(name, '""', f"can have at most {limit} characters")]


def _series_errors(new: Object) -> list[StatusCause]:
    series, wrong = new.get("series"), []
    if series is not None and series.get("count", 0) < 2:
        wrong.append(bad_value("series.count", '""', "should be at least 2"))
    if series is not None and series["lastObservedTime"] is None:
        wrong.append(required("series.lastObservedTime"))
    return wrong


def _creation_errors(new: Object) -> list[StatusCause]:
    wrong = [] if new["eventTime"] else [required("eventTime")]
    if (kind := new.get("type", "")) not in ("Normal", "Warning"):
        wrong.append(bad_value("type", '""', f"has invalid value: {kind}"))
    given = (name for name in ("firstTimestamp", "lastTimestamp", "count", "source"))
    return wrong + [bad_value(name, '""', "needs to be unset") for name in given if new.get(name)]


def _first_seen(obj: Object) -> str | None:
    found: str | None = obj["firstTimestamp"] or obj["eventTime"]
    return found


def _last_seen(obj: Object) -> str | None:
    times = obj["series"]["lastObservedTime"] if "series" in obj else obj["lastTimestamp"]
    found: str | None = times or _first_seen(obj)
    return found


def _count(obj: Object) -> int:
    found = obj.get("series", obj)
    return int(found.get("count", 0)) or int("series" not in obj)


def _object(obj: Object) -> str:
    kind, name = text(obj, "involvedObject", "kind").lower(), text(obj, "involvedObject", "name")
    return f"{kind}/{name}" if name else kind


def _source(obj: Object) -> str:
    host = text(obj, "source", "host") or obj["reportingInstance"]
    return f"{_reporter(obj)}, {host}" if host else _reporter(obj)


def _text(name: str) -> Callable[[Object], str]:
    return lambda obj: obj.get(name, "").strip()


def _selectable(about: str, controller: str) -> Selectable:
    """The fields of selectors in a version that has these names for two of them."""
    names = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
    return {
        "metadata.name": None,
        "metadata.namespace": None,
        **{f"{about}.{name}": selects_text("involvedObject", name) for name in names},
        "reason": selects_text("reason"),
        "type": selects_text("type"),
        controller: selects_text("reportingComponent"),
    }


def _reporter(obj: Object) -> str:
    return text(obj, "source", "component") or text(obj, "reportingComponent")


CORE_EVENTS = Resource(
    plural="events",
    singular="event",
    kind="Event",
    group="",
    version="v1",
    schema=CORE_EVENT,
    columns=(
        Column(
            "Last Seen",
            "The time at which the most recent occurrence of this event was recorded.",
            _last_seen,
            age=True,
        ),
        Column(
            "Type",
            "Type of this event (Normal, Warning), new types could be added in the future",
            _text("type"),
        ),
        Column(
            "Reason",
            "This should be a short, machine understandable string that gives the reason for the "
            "transition into the object's current status.",
            _text("reason"),
        ),
        Column("Object", "The object that this event is about.", _object),
        Column("Subobject", "", lambda obj: text(obj, "involvedObject", "fieldPath"), priority=1),
        Column(
            "Source",
            "The component reporting this event. Should be a short machine understandable string.",
            _source,
            priority=1,
        ),
        Column(
            "Message",
            "A human-readable description of the status of this operation.",
            _text("message"),
        ),
        Column(
            "First Seen",
            "The time at which the event was first recorded. (Time of server receipt is in "
            "TypeMeta.)",
            _first_seen,
            age=True,
            priority=1,
        ),
        Column("Count", "The number of times this event has occurred.", _count, priority=1),
        msgspec.structs.replace(NAME, priority=1),
    ),
    name_errors=path_segment_errors,
    short_names=("ev",),
    unconditional_update=True,
    selectable={**_selectable("involvedObject", "reportingComponent"), "source": _reporter},
    errors=_errors,
)


def _of_core(column: Column) -> Column:
    """The column for events.k8s.io, whose objects have other names."""
    return msgspec.structs.replace(column, cell=lambda obj: column.cell(_inward(obj)))


EVENTS = msgspec.structs.replace(
    CORE_EVENTS,
    columns=tuple(map(_of_core, CORE_EVENTS.columns)),
    group=GROUP,
    schema=EVENT,
    name_errors=subdomain_errors,
    selectable=_selectable("regarding", "reportingController"),
    errors=partial(_errors, strict=True),
    conversion=Conversion(_inward, _outward),
)


KEPT = 3600.0  # seconds
EVERY = 60.0
AT_ONCE = 500  # Events that are looked at, and removed, at a time
_EVENTS = CORE_EVENTS.plural


class EventExpiry:
    """Notes the revision of the store every minute: what is older than that of an hour ago goes.

    `monotonic` returns seconds. A write does no work for it.
    """

    def __init__(
        self, store: ObjectStore, failed: Failed, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._store = store
        self._failed = failed
        self._monotonic = monotonic
        self._marks = deque([(monotonic(), store.revision)])
        self._task = asyncio.create_task(self._run(), name="expire events")

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(EVERY)
            try:
                await self.expire()
            except Exception as error:
                self._failed("event expiry", error)

    async def expire(self) -> None:
        """Remove every Event that was not written for KEPT seconds."""
        now, old = self._monotonic(), 0
        self._marks.append((now, self._store.revision))
        while self._marks[0][0] <= now - KEPT:
            _, old = self._marks.popleft()
        keys = list(self._store.keys(_EVENTS)) if old else []
        for start in range(0, len(keys), AT_ONCE):
            await self._remove(keys[start : start + AT_ONCE], old)

    async def _remove(self, keys: list[str], old: int) -> None:
        """Remove those of these Events that are not newer than the revision `old`."""
        found = (self._store.get(_EVENTS, *key.split("/")) for key in keys)
        writes = [
            self._store.write(_EVENTS, one.namespace, one.name, partial(_removal, one.revision))
            for one in found
            if one is not None and one.revision <= old
        ]
        # Other requests have their turn between two slices.
        await asyncio.gather(asyncio.sleep(0), *writes)

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


def _removal(revision: int, existing: Version | None) -> Plan:
    return Plan(remove=existing is not None and existing.revision == revision)
