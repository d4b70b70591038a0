"""A field in which a person and the cluster differ; the form lets him choose."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from leases.domain.edit.field_writer import writer_of


class Collision(msgspec.Struct, frozen=True):
    """`name` is the field of the form, `field` its name in the API and `path` its path."""

    name: str
    field: str
    yours: str
    theirs: str
    path: tuple[str, ...] = ()


def writers_of(collisions: Iterable[Collision], lease: dict[str, Any]) -> list[str]:
    """Say who wrote the other sides, as managedFields tells."""
    said = []
    for one in collisions:
        writer = writer_of(lease, one.path)
        if writer and writer.manager:
            at = f" at {writer.time[11:19]}" if writer.time else ""
            said.append(f"{writer.manager} wrote {one.field}{at}.")
    return list(dict.fromkeys(said))
