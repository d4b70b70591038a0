"""A field in which a person and the cluster differ; the form lets him choose."""

from __future__ import annotations

import msgspec


class Collision(msgspec.Struct, frozen=True):
    """`name` is the field of the form, `field` its name in the API."""

    name: str
    field: str
    yours: str
    theirs: str
