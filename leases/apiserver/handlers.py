"""get, list, watch, create, replace, patch, delete, deletecollection: one function each."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

from leases.apiserver.codec.go_json import dumps
from leases.apiserver.codec.large_bodies import aside
from leases.apiserver.codec.protobuf import encode_object
from leases.apiserver.errors import bad_request, not_found, success_body
from leases.apiserver.http.bodies import media_type_of, read_object
from leases.apiserver.http.delete_options import delete_options
from leases.apiserver.http.negotiation import (
    JSON,
    PRODUCED,
    PROTOBUF,
    YAML,
    Output,
    encode,
    negotiate,
    wants_pretty,
)
from leases.apiserver.http.options import for_name, list_options, write_options
from leases.apiserver.http.request import Request
from leases.apiserver.http.routes import RequestTarget
from leases.apiserver.patch.dispatch import Patcher
from leases.apiserver.registry.create_update import (
    Writer,
    Written,
    check_sent,
    merge_owners,
)
from leases.apiserver.registry.delete import delete
from leases.apiserver.registry.get_list import StoredPage, list_page, wait_for_version
from leases.apiserver.registry.namespaces import Namespaces
from leases.apiserver.registry.preconditions import check_uid
from leases.apiserver.registry.tables import convert_list, convert_object
from leases.apiserver.registry.validation import path_segment_errors
from leases.apiserver.resources import NAMESPACES, Resource
from leases.apiserver.storage.records import Version
from leases.apiserver.storage.store import ObjectStore
from leases.apiserver.watch.stream import Watches
from leases.wire.status import NotFound
from leases.wire.status_causes import go_quote

Object = dict[str, Any]
Handler = Callable[[Request, RequestTarget, Output], Awaitable[None]]


class Handlers:
    """The verbs over one store."""

    def __init__(
        self,
        store: ObjectStore,
        watches: Watches,
        namespaces: Namespaces,
        writer: Writer,
        patcher: Patcher,
    ) -> None:
        self._store = store
        self._watches = watches
        self._namespaces = namespaces
        self._writer = writer
        self._patcher = patcher
        self._object: dict[str, Handler] = {
            "GET": self._get,
            "PUT": self._replace,
            "PATCH": self._patch,
            "DELETE": self._delete,
        }
        self._collection: dict[str, Handler] = {
            "GET": self._list,
            "POST": self._create,
            "DELETE": self._delete_collection,
        }

    async def handle(self, request: Request, place: RequestTarget) -> None:
        """Serve an authorized request whose method its path allows."""
        media_types = PRODUCED if place.resource.protobuf else (JSON, YAML)
        output = negotiate(request.header(b"accept"), media_types)
        if place.watch:
            await self._list(request, place, output)
            return
        handlers = self._object if place.name else self._collection
        await handlers[request.method](request, place, output)

    async def _get(self, request: Request, place: RequestTarget, output: Output) -> None:
        resource = place.resource
        if request.query.flag("export"):
            raise bad_request(
                "the export parameter, deprecated since v1.14, is no longer supported"
            )
        _check_name(place.name)
        await wait_for_version(self._store, request.query.text("resourceVersion"))
        found = self._store.get(resource.plural, place.namespace, place.name)
        if found is None:
            raise not_found(resource.plural, place.name, resource.group)
        await self._answer_object(request, resource, 200, found, output)

    async def _answer_object(
        self,
        request: Request,
        resource: Resource,
        status: int,
        found: Version | Object,
        output: Output,
    ) -> None:
        """Send a stored version unchanged if the client wants plain JSON."""
        if isinstance(found, Version) and _plain(request, resource, output):
            body = b"%s%s\n" % (resource.head, found.body[1:])
            await request.answer(status, body, JSON)
            return
        obj = resource.shown(found.read() if isinstance(found, Version) else found)
        include = request.query.text("includeObject")
        shown = convert_object(resource, obj, output, include)
        if (
            output == Output(PROTOBUF)
            and isinstance(found, Version)
            and resource.conversion is None
        ):
            await request.answer(status, encode_object(shown, stored=True), PROTOBUF)
            return
        await request.answer_value(status, shown, output)

    async def _list(self, request: Request, place: RequestTarget, output: Output) -> None:
        options = list_options(request.query, place.resource)
        if place.name:
            options = for_name(options, place.name)
        if options.watch or place.watch:
            await self._watches.serve(request, place.resource, place.namespace, options, output)
            return
        page = await list_page(self._store, place.resource.plural, place.namespace, options)
        await self._answer_page(request, place.resource, page, output)

    async def _answer_page(
        self, request: Request, resource: Resource, page: StoredPage, output: Output
    ) -> None:
        if _plain(request, resource, output):
            items = b",".join([version.body for version in page.versions])
            kind = f'{{"kind":"{resource.list_kind}","apiVersion":"{resource.api_version}",'
            body = b'%s"metadata":%s,"items":[%s]}\n' % (kind.encode(), dumps(page.meta), items)
            await request.answer(200, body, JSON)
            return
        include = request.query.text("includeObject")
        pretty = wants_pretty(request.query.get("pretty"), request.header(b"user-agent"), output)

        def encoded() -> bytes:
            found = [resource.shown(version.read()) for version in page.versions]
            shown = convert_list(resource, found, page.meta, output, include)
            return encode(shown, output, pretty=pretty)

        size = sum(len(version.body) for version in page.versions)
        await request.answer(200, await aside(size, encoded), output.media_type)

    async def _create(self, request: Request, place: RequestTarget, output: Output) -> None:
        resource = place.resource
        media_type = media_type_of(request)
        data = await request.body()
        options = write_options(request, "CreateOptions")

        def read() -> Object:
            obj = read_object(request, data, media_type, resource, options.validation)
            merge_owners(obj, request.warn)
            obj["metadata"].pop("managedFields", None)
            return obj

        written = await self._writer.create(
            resource,
            place.namespace,
            await aside(len(data), read),
            options.manager,
            dry_run=options.dry_run,
            size=len(data),
        )
        await self._answer_object(request, resource, 201, written.found, output)

    async def _replace(self, request: Request, place: RequestTarget, output: Output) -> None:
        resource = place.resource
        data = await request.body()
        options = write_options(request, "UpdateOptions")
        media_type = media_type_of(request)

        def wanted(old: Object | None) -> Object:
            known = None if old is None else old["metadata"]
            obj = read_object(request, data, media_type, resource, options.validation, known=known)
            check_sent(place, obj, request.warn)
            if old is None:
                _check_name(place.name)
            check_uid(place, obj, old)
            return obj

        written = await self._writer.update(place, wanted, options, size=len(data))
        await self._answer_written(request, place, written, output)

    async def _patch(self, request: Request, place: RequestTarget, output: Output) -> None:
        _check_name(place.name)
        written = await self._patcher.patch(request, place)
        await self._answer_written(request, place, written, output)

    async def _answer_written(
        self, request: Request, place: RequestTarget, written: Written, output: Output
    ) -> None:
        if written.removed:
            await self._namespaces.finish(place.namespace)
        status = 201 if written.created else 200
        await self._answer_object(request, place.resource, status, written.found, output)

    async def _delete(self, request: Request, place: RequestTarget, output: Output) -> None:
        resource = place.resource
        options = await delete_options(request)
        _check_name(place.name)
        if resource is NAMESPACES:
            marked = await self._namespaces.mark_deleted(place.name, options)
            await self._answer_object(request, resource, 200, marked, output)
            return
        deleted = await delete(self._store, resource, place.namespace, place.name, options)
        await self._namespaces.finish(place.namespace)
        if deleted.held is not None:
            await self._answer_object(request, resource, 200, deleted.held, output)
            return
        status = success_body(place.name, resource.group, resource.plural, deleted.uid)
        await request.answer_value(200, status, Output(output.media_type, pretty=output.pretty))

    async def _delete_collection(
        self, request: Request, place: RequestTarget, output: Output
    ) -> None:
        listing = list_options(request.query, place.resource)
        options = await delete_options(request)
        page = await list_page(self._store, place.resource.plural, place.namespace, listing)
        for version in page.versions:
            with contextlib.suppress(NotFound):
                await delete(self._store, place.resource, place.namespace, version.name, options)
        await self._namespaces.finish(place.namespace)
        await self._answer_page(request, place.resource, page, output)


def _check_name(name: str) -> None:
    """Raises 400 for a name that no path can hold. Source: registry/generic's NamespaceKeyFunc."""
    if wrong := path_segment_errors(name):
        raise bad_request(f"Name parameter invalid: {go_quote(name)}: {';'.join(wrong)}")


def _plain(request: Request, resource: Resource, output: Output) -> bool:
    """Whether the stored bytes can be sent as they are."""
    if output.convert or output.media_type != JSON or resource.conversion is not None:
        return False
    return not wants_pretty(request.query.get("pretty"), request.header(b"user-agent"), output)
