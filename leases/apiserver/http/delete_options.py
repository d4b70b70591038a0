"""Read DeleteOptions from a body or from the query, and check them.

Source: apiserver/pkg/endpoints/handlers/delete.go, apimachinery/pkg/apis/meta/v1/conversion.go and
meta/internalversion/register.go.
"""

from __future__ import annotations

import msgspec

from leases.apiserver.codec import schema
from leases.apiserver.codec.decoding import Decoder
from leases.apiserver.codec.large_bodies import aside
from leases.apiserver.errors import bad_request, invalid_options, not_supported
from leases.apiserver.http.bodies import kind_in, media_type_of, parse
from leases.apiserver.http.options import dry_run_errors
from leases.apiserver.http.request import Params, Request
from leases.wire.status import StatusCause
from leases.wire.status_causes import bad_value, go_quote

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
        raise bad_request(str(error)) from None


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
        wrong.append(not_supported(path, go_quote(propagation), (*_PROPAGATION, "nil")))
    wrong += dry_run_errors(dry_run)
    if wrong:
        raise invalid_options("DeleteOptions", wrong)
    return DeleteOptions(bool(dry_run), uid, version, propagation, orphan)
