"""The records of the store: a version of an object, and an event."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Literal

import msgspec

from leases.apiserver.codec.go_json import decode_stored, dumps
from leases.wire.microtime import format_time

EventType = Literal["ADDED", "MODIFIED", "DELETED"]


class Version(msgspec.Struct, frozen=True, gc=False):
    """One version of one object. `body` is its JSON without kind and apiVersion, rv included."""

    namespace: str
    name: str
    uid: str
    revision: int
    labels: dict[str, str] | None
    body: bytes

    @property
    def key(self) -> str:
        """The key that lists are sorted by, as in etcd."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    def read(self) -> dict[str, Any]:
        """A newly decoded object, which the caller may change."""
        found: dict[str, Any] = decode_stored(self.body)
        return found


class Event(msgspec.Struct, frozen=True, gc=False):
    """One change. For a deletion `current` is None and `last` the last state at its revision."""

    resource: str
    revision: int
    current: Version | None
    previous: Version | None
    last: Version | None = None


def now_text() -> str:
    """The present as metav1.Time."""
    return _second_text(int(time.time()))


@lru_cache(maxsize=2)
def _second_text(second: int) -> str:
    return format_time(datetime.fromtimestamp(second, UTC))


def with_revision(obj: dict[str, Any], revision: int) -> dict[str, Any]:
    """The object with this resourceVersion, in Go's order of fields."""
    metadata = obj["metadata"] | {"resourceVersion": str(revision)}
    if "resourceVersion" not in obj["metadata"]:
        metadata = ordered_metadata(metadata)
    return obj | {"metadata": metadata}


_METADATA_ORDER = (
    "name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation",
    "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "labels", "annotations",
    "ownerReferences", "finalizers", "managedFields",
)  # fmt: skip


def ordered_metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    """ObjectMeta in the order in which Go writes it."""
    return {name: metadata[name] for name in _METADATA_ORDER if name in metadata}


def version_of(obj: dict[str, Any], revision: int) -> Version:
    """The version that a canonical object (without kind and apiVersion) becomes at a revision."""
    stamped = with_revision(obj, revision)
    metadata = stamped["metadata"]
    return Version(
        namespace=metadata.get("namespace", ""),
        name=metadata["name"],
        uid=metadata.get("uid", ""),
        revision=revision,
        labels=metadata.get("labels"),
        body=dumps(stamped),
    )
