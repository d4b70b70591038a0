"""The ASGI app: from a request through 401, 403, 404, 405, 415 and 406 to its handler."""

import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from leases.apiserver import errors
from leases.apiserver.auth import Access, PathAccess, Tokens, authorize, impersonated, wanted_user
from leases.apiserver.codec.decoding import aside
from leases.apiserver.codec.go_json import dumps
from leases.apiserver.codec.protobuf import encode_object
from leases.apiserver.discovery import documents
from leases.apiserver.discovery.documents import Discovery
from leases.apiserver.discovery.openapi import OpenApi
from leases.apiserver.http import negotiation
from leases.apiserver.http.bodies import media_type_of, read_object
from leases.apiserver.http.options import delete_options, for_name, list_options, write_options
from leases.apiserver.http.request import (
    BadPath,
    Receive,
    Request,
    RequestTarget,
    Scope,
    Send,
    access_of,
    allows_method,
    place_of,
)
from leases.apiserver.patch.dispatch import PATCH_TYPES, Patcher
from leases.apiserver.registry.create_update import Writer, Written, check_sent, merge_owners
from leases.apiserver.registry.delete import check_uid, delete
from leases.apiserver.registry.get_list import StoredPage, list_page, wait_for_version
from leases.apiserver.registry.namespaces import Namespaces
from leases.apiserver.registry.reviews import Reviews
from leases.apiserver.registry.tables import convert_list, convert_object
from leases.apiserver.registry.validation import path_segment_errors
from leases.apiserver.resources import NAMESPACES, REVIEWS, Resource
from leases.apiserver.storage.journal import Version
from leases.apiserver.storage.store import ObjectStore
from leases.apiserver.watch.stream import Watches
from leases.wire.status import ApiError, NotFound, StatusDetails, go_quote

Object = dict[str, Any]
Handler = Callable[[Request, RequestTarget, negotiation.Output], Awaitable[None]]


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
        media_types = (
            negotiation.PRODUCED
            if place.resource.protobuf
            else (negotiation.JSON, negotiation.YAML)
        )
        output = negotiation.negotiate(request.header(b"accept"), media_types)
        if place.watch:
            await self._list(request, place, output)
            return
        handlers = self._object if place.name else self._collection
        await handlers[request.method](request, place, output)

    async def _get(
        self, request: Request, place: RequestTarget, output: negotiation.Output
    ) -> None:
        resource = place.resource
        if request.query.flag("export"):
            raise errors.bad_request(
                "the export parameter, deprecated since v1.14, is no longer supported"
            )
        _check_name(place.name)
        await wait_for_version(self._store, request.query.text("resourceVersion"))
        found = self._store.get(resource.plural, place.namespace, place.name)
        if found is None:
            raise errors.not_found(resource.plural, place.name, resource.group)
        await self._answer_object(request, resource, 200, found, output)

    async def _answer_object(
        self,
        request: Request,
        resource: Resource,
        status: int,
        found: Version | Object,
        output: negotiation.Output,
    ) -> None:
        """Send a stored version unchanged if the client wants plain JSON."""
        include = request.query.text("includeObject")
        pretty = negotiation.wants_pretty(
            request.query.get("pretty"), request.header(b"user-agent"), output
        )
        plain = _plain(resource, output, pretty=pretty)

        def encoded() -> bytes:
            if isinstance(found, Version) and plain:
                return b"%s%s\n" % (resource.head, found.body[1:])
            obj = resource.shown(found.read() if isinstance(found, Version) else found)
            shown = convert_object(resource, obj, output, include)
            if (
                output == negotiation.Output(negotiation.PROTOBUF)
                and isinstance(found, Version)
                and resource.conversion is None
            ):
                return encode_object(shown, stored=True)
            return negotiation.encode(shown, output, pretty=pretty)

        size = len(found.body) if isinstance(found, Version) else 0
        await request.answer_made(size, encoded, output.media_type, status=status, quick=True)

    async def _list(
        self, request: Request, place: RequestTarget, output: negotiation.Output
    ) -> None:
        options = list_options(request.query, place.resource)
        if place.name:
            options = for_name(options, place.name)
        if options.watch or place.watch:
            await self._watches.serve(request, place.resource, place.namespace, options, output)
            return
        page = await list_page(self._store, place.resource.plural, place.namespace, options)
        await self._answer_page(request, place.resource, page, output)

    async def _answer_page(
        self, request: Request, resource: Resource, page: StoredPage, output: negotiation.Output
    ) -> None:
        pretty = negotiation.wants_pretty(
            request.query.get("pretty"), request.header(b"user-agent"), output
        )
        size = sum(len(version.body) for version in page.versions)
        if _plain(resource, output, pretty=pretty):

            def joined() -> bytes:
                items = b",".join([version.body for version in page.versions])
                kind = f'{{"kind":"{resource.list_kind}","apiVersion":"{resource.api_version}",'
                return b'%s"metadata":%s,"items":[%s]}\n' % (kind.encode(), dumps(page.meta), items)

            await request.answer_made(size, joined, negotiation.JSON, quick=True)
            return
        include = request.query.text("includeObject")

        def encoded() -> bytes:
            found = [resource.shown(version.read()) for version in page.versions]
            shown = convert_list(resource, found, page.meta, output, include)
            return negotiation.encode(shown, output, pretty=pretty)

        await request.answer_made(size, encoded, output.media_type)

    async def _create(
        self, request: Request, place: RequestTarget, output: negotiation.Output
    ) -> None:
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

    async def _replace(
        self, request: Request, place: RequestTarget, output: negotiation.Output
    ) -> None:
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

    async def _patch(
        self, request: Request, place: RequestTarget, output: negotiation.Output
    ) -> None:
        _check_name(place.name)
        written = await self._patcher.patch(request, place)
        await self._answer_written(request, place, written, output)

    async def _answer_written(
        self, request: Request, place: RequestTarget, written: Written, output: negotiation.Output
    ) -> None:
        if written.removed:
            await self._namespaces.finish(place.namespace)
        status = 201 if written.created else 200
        await self._answer_object(request, place.resource, status, written.found, output)

    async def _delete(
        self, request: Request, place: RequestTarget, output: negotiation.Output
    ) -> None:
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
        status = errors.success_body(place.name, resource.group, resource.plural, deleted.uid)
        await request.answer_value(
            200, status, negotiation.Output(output.media_type, pretty=output.pretty)
        )

    async def _delete_collection(
        self, request: Request, place: RequestTarget, output: negotiation.Output
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
        raise errors.bad_request(f"Name parameter invalid: {go_quote(name)}: {';'.join(wrong)}")


def _plain(resource: Resource, output: negotiation.Output, *, pretty: bool) -> bool:
    """Whether the stored bytes can be sent as they are."""
    as_stored = output.media_type == negotiation.JSON and not output.convert
    return as_stored and resource.conversion is None and not pretty


logger = logging.getLogger(__name__)
NOT_FOUND = "404 page not found\n"


class App:
    """Authenticate, authorize and route each request, then call its handler."""

    def __init__(self, resources: tuple[Resource, ...], tokens: Tokens, handlers: Handlers) -> None:
        self._tokens = tokens
        self._handlers = handlers
        self._reviews = Reviews(tokens)
        served = resources + REVIEWS
        self._resources = {(each.group, each.version, each.plural): each for each in served}
        self._discovery = Discovery(served)
        self._openapi = OpenApi(served)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive, send)
        try:
            if request.has_bad_path():
                await request.answer_text(400, "400 Bad Request")
                return
            await self._serve(request)
        except BadPath as error:
            await request.answer_text(500, f"{error.status.message}\n")
        except ApiError as error:
            await request.answer_error(error)
        except ConnectionResetError:
            logger.debug("A client closed the connection while it sent %s", request.path)
        except Exception:
            logger.exception("%s %s failed", request.method, request.path)
            await request.answer_error(
                errors.internal("an error on the server; its log tells more")
            )

    async def _serve(self, request: Request) -> None:
        access = access_of(request) or PathAccess(request.method.lower(), request.path)
        user = self._tokens.user(request.header(b"authorization") or None)
        wanted = wanted_user(request.scope["headers"])
        if wanted is not None:
            user = impersonated(user, wanted, access, self._tokens)
        authorize(user, access)
        request.user = user
        if isinstance(access, PathAccess):
            await self._serve_path(request)
        else:
            await self._serve_resource(request, access)

    async def _serve_resource(self, request: Request, access: Access) -> None:
        parts = request.parts
        version = parts[2] if access.group or parts[0] == "apis" else parts[1]
        # RequestInfo ignores slashes before a path, but no route begins with two.
        routed = not request.path.startswith("//")
        resource = self._resources.get((access.group, version, access.resource)) if routed else None
        place = place_of(request, resource) if resource else None
        if place is None:
            await self._unknown(request)
            return
        if place.resource.warning:
            request.warn(place.resource.warning)
        if not allows_method(place, request.method):
            raise errors.method_not_allowed()
        _check_route(request, place)
        if place.resource.is_review:
            await self._reviews.create(request, place)
            return
        await self._handlers.handle(request, place)

    async def _unknown(self, request: Request) -> None:
        if self._discovery.knows_group(request.path):
            raise errors.no_such_path()
        await request.answer_text(404, NOT_FOUND)

    async def _serve_path(self, request: Request) -> None:
        path = request.path
        verbose = request.query.get("verbose") is not None
        if (text := documents.health(path, verbose=verbose)) is not None:
            await request.answer_text(200, text)
            return
        if path.startswith("/openapi/"):
            if not await self._openapi.serve(request):
                await request.answer_text(404, NOT_FOUND)
            return
        bare = path.rstrip("/") if path.startswith(("/api", "/version")) else path
        document = self._discovery.document(bare, request.server_address)
        if document is None:
            await self._unknown(request)
            return
        any_method = bare in ("/", "/apis") or (bare.startswith("/apis/") and bare.count("/") == 2)
        if request.method != "GET" and not any_method:
            raise errors.method_not_allowed()
        if bare in ("/api", "/apis") and await self._serve_aggregated(request, bare):
            return
        accept, output = request.header(b"accept"), negotiation.Output(pretty=True)
        if bare == "/version":
            negotiation.check_produced(accept, (negotiation.JSON,))
        elif bare not in ("", "/"):
            negotiation.check_produced(accept)
            output = negotiation.negotiate(accept, converts=False)
        await request.answer_value(200, document, output)

    async def _serve_aggregated(self, request: Request, path: str) -> bool:
        """Serve aggregated discovery if the client accepts it. Raises 406 for other versions."""
        media_type = documents.aggregated_type(request.header(b"accept"))
        if media_type is None:
            raise errors.not_acceptable(
                f"only the following media types are accepted: {errors.MEDIA_TYPES}"
            )
        if not media_type:
            return False
        document = self._discovery.aggregated(path)
        tag = documents.etag(document)
        more = [(b"etag", tag.encode()), (b"vary", b"Accept")]
        content_type = f"{media_type};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
        if request.header(b"if-none-match") == tag:
            await request.answer(304, b"", content_type, more)
            return True
        body = negotiation.encode(document, negotiation.Output(media_type), pretty=False)
        await request.answer(200, body, content_type, more)
        return True


def _check_route(request: Request, place: RequestTarget) -> None:
    """Raises 415 for an unknown patch type and 406 for an Accept header that nothing satisfies."""
    if request.method == "PATCH":
        given = request.header(b"content-type").partition(";")[0].strip()
        if given not in PATCH_TYPES:
            message = "415: Unsupported Media Type"
            raise errors.failure(415, "UnsupportedMediaType", message, StatusDetails())
    streams = request.method == "GET" and (not place.name or place.watch)
    negotiation.check_produced(
        request.header(b"accept"),
        negotiation.PRODUCED + negotiation.STREAMED if streams else negotiation.PRODUCED,
    )
