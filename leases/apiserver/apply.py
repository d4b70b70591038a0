"""Server-side apply: merge what is applied, drop what the applier lets go, refuse what others own.

Source: structured-merge-diff's merge/update.go and typed/merge.go; managedfields/internal/structuredmerge.go.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from leases.apiserver import schema
from leases.apiserver.errors import failure
from leases.apiserver.fields import (
    Path,
    Paths,
    applied_paths,
    compare,
    elements,
    is_granular,
    item_element,
    kind_of,
    shown,
    stripped,
)
from leases.apiserver.gojson import decode_stored, go_text_quote
from leases.apiserver.managed_fields import (
    APPLY,
    UPDATE,
    Managed,
    Manager,
    Owned,
    capped,
    current,
    updated,
)
from leases.wire.status import ApiError, StatusCause, StatusDetails

BEFORE_FIRST = "before-first-apply"
Object = dict[str, Any]
