"""Read query parameters and DeleteOptions, apply defaults, check them; which objects they choose.

Source: apimachinery/pkg/apis/meta/v1/validation and meta/internalversion/{defaults.go,validation}.

Source: apiserver/pkg/endpoints/handlers/delete.go, apimachinery/pkg/apis/meta/v1/conversion.go and
meta/internalversion/register.go.
"""

import re

import msgspec

from leases.apiserver import errors
from leases.apiserver.codec import schema
from leases.apiserver.codec.decoding import Decoder, aside
from leases.apiserver.http.bodies import kind_in, media_type_of, parse
from leases.apiserver.http.request import Params, Request
from leases.apiserver.resources import Resource, Selectable
from leases.apiserver.storage.journal import Version
from leases.wire import selectors
from leases.wire.status import StatusCause, bad_value, go_quote

_FLAGS = ("true", "false")  # an object need not hold them
_UNESCAPED = re.compile(r"[\w ./:-]+", re.ASCII)


class Selector:
    """A label and field selector; an empty one selects everything.

    `selectable` reads the values of fields that a Version does not hold.
    """

    def __init__(
        self,
        labels: list[selectors.Matcher],
        fields: list[selectors.FieldTerm],
        selectable: Selectable | None = None,
    ) -> None:
        self.labels = labels
        self.fields = fields
        self._selectable = selectable or {}
        # An object that holds none of these texts is not selected, and need not be decoded.
        self._needles = [
            term.value.encode()
            for term in fields
            if self._selectable.get(term.field) is not None
            and not term.negated
            and term.value not in _FLAGS
            and _UNESCAPED.fullmatch(term.value)
        ]
        self.empty = not labels and not fields

    def selects(self, version: Version) -> bool:
        if self.empty:
            return True
        for needle in self._needles:
            if needle not in version.body:
                return False
        found = version.labels or {}
        return all(matches(found) for matches in self.labels) and all(
            self._matches(term, version) for term in self.fields
        )

    def _matches(self, term: selectors.FieldTerm, version: Version) -> bool:
        read = self._selectable.get(term.field)
        if read is not None:
            value = read(version.read())
        else:
            value = version.name if term.field == "metadata.name" else version.namespace
        return (value == term.value) != term.negated


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
        raise errors.invalid_options("ListOptions", wrong)
    try:
        selectors.check_fields(options.selector.fields, resource.selectable)
    except selectors.SelectorError as error:
        raise errors.bad_request(str(error)) from None
    return options


def _selector(query: Params, resource: Resource) -> Selector:
    try:
        return Selector(
            selectors.parse_labels(query.text("labelSelector")),
            selectors.parse_fields(query.text("fieldSelector")),
            resource.selectable,
        )
    except selectors.SelectorError as error:
        raise errors.bad_request(str(error)) from None


_NO_LIST_OPTIONS = ListOptions(Selector([], []))


def for_name(options: ListOptions, name: str) -> ListOptions:
    """The options of a /watch/ path that ends in a name. Raises 400 when they select another."""
    fields = options.selector.fields
    if not fields:
        fields = [selectors.FieldTerm("metadata.name", name, negated=False)]
    elif selectors.exact_name(fields) != name:
        raise errors.bad_request("fieldSelector metadata.name doesn't match requested name")
    return msgspec.structs.replace(options, selector=Selector(options.selector.labels, fields))


_MATCH = "resourceVersionMatch"
_WITH_CONTINUE = "resourceVersionMatch is forbidden when continue is provided"


def _list_errors(options: ListOptions) -> list[StatusCause]:
    wrong: list[StatusCause] = []
    match = options.match
    if match:
        if not options.version:
            detail = "resourceVersionMatch is forbidden unless resourceVersion is provided"
            wrong.append(errors.not_allowed(_MATCH, detail))
        if options.token:
            wrong.append(errors.not_allowed(_MATCH, _WITH_CONTINUE))
        if match not in (EXACT, NOT_OLDER):
            wrong.append(errors.not_supported(_MATCH, go_quote(match), (EXACT, NOT_OLDER, "")))
        if match == EXACT and options.version == "0":
            detail = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
            wrong.append(errors.not_allowed(_MATCH, detail))
    if options.initial_events is not None:
        detail = "sendInitialEvents is forbidden for list"
        wrong.append(errors.not_allowed("sendInitialEvents", detail))
    return wrong


def _watch_errors(options: ListOptions) -> list[StatusCause]:
    wrong: list[StatusCause] = []
    match = options.match
    if options.initial_events is not None and match != NOT_OLDER:
        detail = f"sendInitialEvents requires setting resourceVersionMatch to {NOT_OLDER}"
        wrong.append(errors.not_allowed(_MATCH, detail))
    if match:
        if options.initial_events is None:
            detail = (
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
            )
            wrong.append(errors.not_allowed(_MATCH, detail))
        if match != NOT_OLDER:
            wrong.append(errors.not_supported(_MATCH, go_quote(match), (NOT_OLDER,)))
        if options.token:
            wrong.append(errors.not_allowed(_MATCH, _WITH_CONTINUE))
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
            wrong.append(errors.not_allowed("force", "may not be specified for non-apply patch"))
        if apply and not given:
            wrong.append(errors.required("fieldManager", "is required for apply patch"))
    wrong += _manager_errors(given) + dry_run_errors(dry_run)
    validation = query.text("fieldValidation")
    known = ("", "Ignore", "Strict", "Warn")
    if validation not in known:
        wrong.append(errors.not_supported("fieldValidation", go_quote(validation), known))
    if wrong:
        raise errors.invalid_options(kind, wrong)
    return WriteOptions(bool(dry_run), given or own, validation or "Warn", force)


def manager_of(agent: str) -> str:
    """The User-Agent up to the first slash, cut to 128 bytes of printable text."""
    return agent.encode("latin-1").decode("utf-8", "replace").split("/")[0][:MAX_MANAGER_BYTES]


def _manager_errors(manager: str) -> list[StatusCause]:
    wrong = []
    if len(manager.encode()) > MAX_MANAGER_BYTES:
        wrong.append(errors.too_long("fieldManager", MAX_MANAGER_BYTES))
    for position, char in enumerate(manager):
        if not char.isprintable():
            detail = f"invalid character U+{ord(char):04X} (at position {position})"
            wrong.append(bad_value("fieldManager", go_quote(manager), detail))
    return wrong


def dry_run_errors(values: list[str]) -> list[StatusCause]:
    if all(value == "All" for value in values):
        return []
    shown = f"[{','.join(go_quote(value) for value in values)}]"
    return [errors.not_supported("dryRun", shown, ("All",))]


_SCHEME = "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27"
_KIND = "DeleteOptions"
# Kinds that this scheme takes in every version, and those of meta.k8s.io/v1 alone.
_IN_ALL_VERSIONS = {
    _KIND, "CreateOptions", "UpdateOptions", "Status", "APIVersions", "APIGroupList", "APIGroup",
    "APIResourceList",
}  # fmt: skip
_IN_META = {
    "WatchEvent", "ListOptions", "GetOptions", "PatchOptions", "Table", "TableOptions",
    "PartialObjectMetadata", "PartialObjectMetadataList",
}  # fmt: skip
_PROPAGATION = ("Foreground", "Background", "Orphan")


class DeleteOptions(msgspec.Struct, frozen=True):
    """How to delete. `orphan` is the deprecated orphanDependents."""

    dry_run: bool = False
    uid: str | None = None
    version: str | None = None
    propagation: str | None = None
    orphan: bool | None = None


async def delete_options(request: Request) -> DeleteOptions:
    """From the body when there is one, else from the query. Raises 400, 413, 415 and 422."""
    data = await request.body()
    if not data:
        return _of_query(request.query)
    media_type = media_type_of(request)
    try:
        return await aside(len(data), _of_body, data, media_type)
    except ValueError as error:
        raise errors.bad_request(str(error)) from None


def _of_query(query: Params) -> DeleteOptions:
    query.integer("gracePeriodSeconds")
    return _checked(
        dry_run=query.all("dryRun"),
        propagation=query.get("propagationPolicy"),
        orphan=query.flag("orphanDependents"),
        uid=query.text("uid") or None,
        version=query.text("resourceVersion") or None,
    )


def _of_body(data: bytes, media_type: str) -> DeleteOptions:
    """Ignores unknown fields. Raises ValueError with Go's message."""
    value = parse(data, media_type, schema.DELETE_OPTIONS).value
    kind, version = kind_in(value, _KIND, "v1", data)
    _check_kind(kind, version)
    found = Decoder().decode({} if value is None else value, schema.DELETE_OPTIONS)
    preconditions = found.get("preconditions", {})
    return _checked(
        dry_run=found.get("dryRun", []),
        propagation=found.get("propagationPolicy"),
        orphan=found.get("orphanDependents"),
        uid=preconditions.get("uid"),
        version=preconditions.get("resourceVersion"),
    )


def _check_kind(kind: str, version: str) -> None:
    if kind == _KIND:
        return
    if kind in _IN_ALL_VERSIONS or (version == "meta.k8s.io/v1" and kind in _IN_META):
        raise ValueError(f"converting (v1.{kind}) to (v1.{_KIND}): unknown conversion")
    raise ValueError(
        f"no kind {go_quote(kind)} is registered for version {go_quote(version)} "
        f"in scheme {go_quote(_SCHEME)}"
    )


def _checked(
    *,
    dry_run: list[str],
    propagation: str | None,
    orphan: bool | None,
    uid: str | None,
    version: str | None,
) -> DeleteOptions:
    wrong: list[StatusCause] = []
    path = "propagationPolicy"
    if propagation is not None and orphan is not None:
        detail = "orphanDependents and deletionPropagation cannot be both set"
        wrong.append(bad_value(path, go_quote(propagation), detail))
    if propagation is not None and propagation not in _PROPAGATION:
        wrong.append(errors.not_supported(path, go_quote(propagation), (*_PROPAGATION, "nil")))
    wrong += dry_run_errors(dry_run)
    if wrong:
        raise errors.invalid_options("DeleteOptions", wrong)
    return DeleteOptions(bool(dry_run), uid, version, propagation, orphan)
