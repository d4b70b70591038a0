"""The ASGI app: from a request through 401, 403, 404, 405, 415 and 406 to its handler."""

from __future__ import annotations

import logging

from leases.apiserver.auth.authorization import Access, PathAccess, authorize
from leases.apiserver.auth.impersonation import impersonated, wanted_user
from leases.apiserver.auth.tokens import Tokens
from leases.apiserver.discovery import documents
from leases.apiserver.discovery.documents import Discovery
from leases.apiserver.discovery.openapi import OpenApi
from leases.apiserver.errors import (
    MEDIA_TYPES,
    failure,
    internal,
    method_not_allowed,
    no_such_path,
    not_acceptable,
)
from leases.apiserver.handlers import Handlers
from leases.apiserver.http.negotiation import (
    JSON,
    PRODUCED,
    STREAMED,
    Output,
    check_produced,
    encode,
    negotiate,
)
from leases.apiserver.http.request import Receive, Request, Scope, Send
from leases.apiserver.http.routes import BadPath, RequestTarget, access_of, allows_method, place_of
from leases.apiserver.patch.dispatch import PATCH_TYPES
from leases.apiserver.registry.reviews import Reviews
from leases.apiserver.resources import REVIEWS, Resource
from leases.wire.status import ApiError, StatusDetails

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
            await request.answer_error(internal("an error on the server; its log tells more"))

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
            raise method_not_allowed()
        _check_route(request, place)
        if place.resource.is_review:
            await self._reviews.create(request, place)
            return
        await self._handlers.handle(request, place)

    async def _unknown(self, request: Request) -> None:
        if self._discovery.knows_group(request.path):
            raise no_such_path()
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
            raise method_not_allowed()
        if bare in ("/api", "/apis") and await self._serve_aggregated(request, bare):
            return
        accept, output = request.header(b"accept"), Output(pretty=True)
        if bare == "/version":
            check_produced(accept, (JSON,))
        elif bare not in ("", "/"):
            check_produced(accept)
            output = negotiate(accept, converts=False)
        await request.answer_value(200, document, output)

    async def _serve_aggregated(self, request: Request, path: str) -> bool:
        """Serve aggregated discovery if the client accepts it. Raises 406 for other versions."""
        media_type = documents.aggregated_type(request.header(b"accept"))
        if media_type is None:
            raise not_acceptable(f"only the following media types are accepted: {MEDIA_TYPES}")
        if not media_type:
            return False
        document = self._discovery.aggregated(path)
        tag = documents.etag(document)
        more = [(b"etag", tag.encode()), (b"vary", b"Accept")]
        content_type = f"{media_type};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
        if request.header(b"if-none-match") == tag:
            await request.answer(304, b"", content_type, more)
            return True
        body = encode(document, Output(media_type), pretty=False)
        await request.answer(200, body, content_type, more)
        return True


def _check_route(request: Request, place: RequestTarget) -> None:
    """Raises 415 for an unknown patch type and 406 for an Accept header that nothing satisfies."""
    if request.method == "PATCH":
        given = request.header(b"content-type").partition(";")[0].strip()
        if given not in PATCH_TYPES:
            message = "415: Unsupported Media Type"
            raise failure(415, "UnsupportedMediaType", message, StatusDetails())
    streams = request.method == "GET" and (not place.name or place.watch)
    check_produced(request.header(b"accept"), PRODUCED + STREAMED if streams else PRODUCED)
