"""What a browser sends of the edit form."""

from __future__ import annotations

from django.http import QueryDict

from dashboard.forms.edit_form import PAIRS, initial_of, put_pairs
from leases.domain.lease import Lease


def as_typed(lease: Lease) -> QueryDict:
    """What it sends if nothing was typed."""
    data = QueryDict(mutable=True)
    initial = initial_of(lease)
    for part in PAIRS:
        put_pairs(data, part, initial.pop(part))
    data.update(initial)
    return data
