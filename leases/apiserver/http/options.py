"""Read query parameters, apply defaults, check them.

Source: apimachinery/pkg/apis/meta/v1/validation and meta/internalversion/{defaults.go,validation}.
"""

from __future__ import annotations

import msgspec

from leases.apiserver.errors import (
    bad_request,
    invalid_options,
    not_allowed,
    not_supported,
    required,
    too_long,
)
from leases.apiserver.http.request import Params, Request
from leases.apiserver.http.selector import Selector
from leases.apiserver.resources import Resource
from leases.wire.selectors import (
    FieldTerm,
    SelectorError,
    check_fields,
    exact_name,
    parse_fields,
    parse_labels,
)
from leases.wire.status import StatusCause
from leases.wire.status_causes import bad_value, go_quote

MAX_MANAGER_BYTES = 128
EXACT, NOT_OLDER = "Exact", "NotOlderThan"


class ListOptions(msgspec.Struct, frozen=True):
    """ListOptions after defaulting and checking."""

    selector: Selector
    watch: bool = False
    bookmarks: bool = False
    version: str = ""
    match: str = ""
    limit: int = 0
    token: str = ""
    timeout: int | None = None
    initial_events: bool | None = None


def list_options(query: Params, resource: Resource) -> ListOptions:
    """Raises 400 and 422."""
    if not query:
        return _NO_LIST_OPTIONS
    version, match = query.text("resourceVersion"), query.text("resourceVersionMatch")
    watch, initial = bool(query.flag("watch")), query.flag("sendInitialEvents")
    if watch and initial is None and not match and version in ("", "0"):
        initial, match = True, NOT_OLDER  # SetListOptionsDefaults: how clients watched before
    options = ListOptions(
        watch=watch,
        bookmarks=bool(query.flag("allowWatchBookmarks")),
        version=version,
        match=match,
        timeout=query.integer("timeoutSeconds"),
        limit=query.integer("limit") or 0,
        token=query.text("continue"),
        initial_events=initial,
        selector=_selector(query, resource),  # after the numbers, whose errors come first
    )
    wrong = _watch_errors(options) if watch else _list_errors(options)
    if wrong:
        raise invalid_options("ListOptions", wrong)
    try:
        check_fields(options.selector.fields, resource.selectable)
    except SelectorError as error:
        raise bad_request(str(error)) from None
    return options


def _selector(query: Params, resource: Resource) -> Selector:
    try:
        return Selector(
            parse_labels(query.text("labelSelector")),
            parse_fields(query.text("fieldSelector")),
            resource.selectable,
        )
    except SelectorError as error:
        raise bad_request(str(error)) from None


_NO_LIST_OPTIONS = ListOptions(Selector([], []))


def for_name(options: ListOptions, name: str) -> ListOptions:
    """The options of a /watch/ path that ends in a name. Raises 400 when they select another."""
    fields = options.selector.fields
    if not fields:
        fields = [FieldTerm("metadata.name", name, negated=False)]
    elif exact_name(fields) != name:
        raise bad_request("fieldSelector metadata.name doesn't match requested name")
    return msgspec.structs.replace(options, selector=Selector(options.selector.labels, fields))


_MATCH = "resourceVersionMatch"
_WITH_CONTINUE = "resourceVersionMatch is forbidden when continue is provided"


def _list_errors(options: ListOptions) -> list[StatusCause]:
    wrong: list[StatusCause] = []
    match = options.match
    if match:
        if not options.version:
            detail = "resourceVersionMatch is forbidden unless resourceVersion is provided"
            wrong.append(not_allowed(_MATCH, detail))
        if options.token:
            wrong.append(not_allowed(_MATCH, _WITH_CONTINUE))
        if match not in (EXACT, NOT_OLDER):
            wrong.append(not_supported(_MATCH, go_quote(match), (EXACT, NOT_OLDER, "")))
        if match == EXACT and options.version == "0":
            detail = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
            wrong.append(not_allowed(_MATCH, detail))
    if options.initial_events is not None:
        detail = "sendInitialEvents is forbidden for list"
        wrong.append(not_allowed("sendInitialEvents", detail))
    return wrong


def _watch_errors(options: ListOptions) -> list[StatusCause]:
    wrong: list[StatusCause] = []
    match = options.match
    if options.initial_events is not None and match != NOT_OLDER:
        detail = f"sendInitialEvents requires setting resourceVersionMatch to {NOT_OLDER}"
        wrong.append(not_allowed(_MATCH, detail))
    if match:
        if options.initial_events is None:
            detail = (
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
            )
            wrong.append(not_allowed(_MATCH, detail))
        if match != NOT_OLDER:
            wrong.append(not_supported(_MATCH, go_quote(match), (NOT_OLDER,)))
        if options.token:
            wrong.append(not_allowed(_MATCH, _WITH_CONTINUE))
    return wrong


class WriteOptions(msgspec.Struct, frozen=True):
    """Options of create, update and patch. `validation` is Warn, Strict or Ignore."""

    dry_run: bool = False
    manager: str = ""
    validation: str = "Warn"
    force: bool | None = None


def write_options(request: Request, kind: str, *, apply: bool = False) -> WriteOptions:
    """Raises 422. `kind` is CreateOptions, UpdateOptions or PatchOptions."""
    query, own = request.query, manager_of(request.header(b"user-agent"))
    if not query and not apply:
        return WriteOptions(manager=own)
    force = query.flag("force") if kind == "PatchOptions" else None
    dry_run, given = query.all("dryRun"), query.text("fieldManager")
    wrong: list[StatusCause] = []
    if kind == "PatchOptions":
        if not apply and force is not None:
            wrong.append(not_allowed("force", "may not be specified for non-apply patch"))
        if apply and not given:
            wrong.append(required("fieldManager", "is required for apply patch"))
    wrong += _manager_errors(given) + dry_run_errors(dry_run)
    validation = query.text("fieldValidation")
    known = ("", "Ignore", "Strict", "Warn")
    if validation not in known:
        wrong.append(not_supported("fieldValidation", go_quote(validation), known))
    if wrong:
        raise invalid_options(kind, wrong)
    return WriteOptions(bool(dry_run), given or own, validation or "Warn", force)


def manager_of(agent: str) -> str:
    """The User-Agent up to the first slash, cut to 128 bytes of printable text."""
    return agent.encode("latin-1").decode("utf-8", "replace").split("/")[0][:MAX_MANAGER_BYTES]


def _manager_errors(manager: str) -> list[StatusCause]:
    wrong = []
    if len(manager.encode()) > MAX_MANAGER_BYTES:
        wrong.append(too_long("fieldManager", MAX_MANAGER_BYTES))
    for position, char in enumerate(manager):
        if not char.isprintable():
            detail = f"invalid character U+{ord(char):04X} (at position {position})"
            wrong.append(bad_value("fieldManager", go_quote(manager), detail))
    return wrong


def dry_run_errors(values: list[str]) -> list[StatusCause]:
    if all(value == "All" for value in values):
        return []
    shown = f"[{','.join(go_quote(value) for value in values)}]"
    return [not_supported("dryRun", shown, ("All",))]
