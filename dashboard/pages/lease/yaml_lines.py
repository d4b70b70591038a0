"""A Lease as lines of YAML, which the template colours: no HTML is made from data."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from leases.domain.lease import Lease
from leases.wire.microtime import format_microtime, format_time

# Text that YAML needs no quotes for: no special sign, number, date or keyword.
_PLAIN = re.compile(r"[A-Za-z/][A-Za-z0-9_./-]*")
_WORDS = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}


class YamlLine(msgspec.Struct, frozen=True):
    """`indent` ends in a list's dash where there is one; the value is quoted or not."""

    indent: str
    key: str
    value: str
    quoted: bool

    @property
    def text(self) -> str:
        return f"{self.indent}{self.key}:{' ' if self.value else ''}{self.value}"


def yaml_lines(lease: Lease) -> tuple[YamlLine, ...]:
    """The Lease in the order kubectl prints it, cut to what Leaseboard reads."""
    return tuple(_lines(_document(lease), ""))


def _document(lease: Lease) -> dict[str, Any]:
    meta, spec = lease.metadata, lease.spec
    metadata: dict[str, Any] = {
        "annotations": meta.annotations,
        "creationTimestamp": meta.creation_timestamp and format_time(meta.creation_timestamp),
        "labels": meta.labels,
        "name": meta.name,
        "namespace": meta.namespace,
        "ownerReferences": [
            {"kind": owner.kind, "name": owner.name} for owner in meta.owner_references or ()
        ],
        "resourceVersion": meta.resource_version,
        "uid": meta.uid,
    }
    fields: dict[str, Any] = {
        "acquireTime": spec.acquire_time and format_microtime(spec.acquire_time),
        "holderIdentity": spec.holder_identity,
        "leaseDurationSeconds": spec.lease_duration_seconds,
        "leaseTransitions": spec.lease_transitions,
        "preferredHolder": spec.preferred_holder,
        "renewTime": spec.renew_time and format_microtime(spec.renew_time),
        "strategy": spec.strategy,
    }
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {k: v for k, v in metadata.items() if v not in (None, {}, [])},
        "spec": {k: v for k, v in fields.items() if v is not None},
    }


def _lines(mapping: Mapping[str, Any], indent: str) -> Iterator[YamlLine]:
    for name, value in mapping.items():
        key = name if _PLAIN.fullmatch(name) else json.dumps(name)
        if isinstance(value, Mapping):
            yield YamlLine(indent, key, "" if value else "{}", False)
            yield from _lines(value, indent + "  ")
        elif isinstance(value, list):
            yield YamlLine(indent, key, "", False)
            for item in value:
                yield from _item(item, indent)
        else:
            text, quoted = _scalar(value)
            yield YamlLine(indent, key, text, quoted)


def _item(item: Mapping[str, Any], indent: str) -> Iterator[YamlLine]:
    for number, line in enumerate(_lines(item, indent + "  ")):
        yield msgspec.structs.replace(line, indent=f"{indent}- ") if number == 0 else line


def _scalar(value: Any) -> tuple[str, bool]:
    if isinstance(value, str) and not (_PLAIN.fullmatch(value) and value.lower() not in _WORDS):
        return json.dumps(value, ensure_ascii=False), True
    return str(value), False
