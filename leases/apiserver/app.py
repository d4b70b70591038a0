"""The ASGI app: from a request through 401, 403, 404, 405, 415 and 406 to its handler."""

from __future__ import annotations

import logging

from leases.apiserver.auth.tokens import Access, Tokens, authorize, authorize_path
from leases.apiserver.discovery import documents
from leases.apiserver.discovery.documents import AUTHORIZATION_GROUP, REVIEWS, Discovery
from leases.apiserver.discovery.openapi import OpenApi
from leases.apiserver.errors import (
    failure,
    internal,
    method_not_allowed,
    no_such_path,
    not_acceptable,
)
from leases.apiserver.handlers import Handlers
from leases.apiserver.http.negotiation import (
    JSON,
    Output,
    check_produced,
    encode,
    negotiate_or_json,
)
from leases.apiserver.http.request import Receive, Request, Scope, Send
from leases.apiserver.http.routes import BadPath, RequestTarget, access_of, allows_method, place_of
from leases.apiserver.patch.dispatch import PATCH_TYPES
from leases.apiserver.registry.access_reviews import review
from leases.apiserver.resources import Resource
from leases.wire.status import ApiError, StatusDetails

logger = logging.getLogger(__name__)
NOT_FOUND = "404 page not found\n"


class App:
    """Authenticate, authorize and route each request, then call its handler."""

    def __init__(self, resources: tuple[Resource, ...], tokens: Tokens, handlers: Handlers) -> None:
        self._tokens = tokens
        self._handlers = handlers
        self._resources = {(each.group, each.version, each.plural): each for each in resources}
        self._discovery = Discovery(resources)
        self._openapi = OpenApi(resources)

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
        access = access_of(request)
        request.user = self._tokens.user(request.header(b"authorization") or None)
        if access is None:
            authorize_path(request.user, request.method, request.path)
            await self._serve_path(request)
            return
        authorize(request.user, access)
        await self._serve_resource(request, access)

    async def _serve_resource(self, request: Request, access: Access) -> None:
        if (access.group, access.resource) == (AUTHORIZATION_GROUP, REVIEWS):
            await self._serve_review(request)
            return
        parts = request.parts
        version = parts[2] if access.group or parts[0] == "apis" else parts[1]
        resource = self._resources.get((access.group, version, access.resource))
        place = place_of(request, resource) if resource else None
        if place is None:
            await self._unknown(request)
            return
        if place.resource.warning:
            request.warn(place.resource.warning)
        if not allows_method(place, request.method):
            raise method_not_allowed()
        _check_route(request, place)
        await self._handlers.handle(request, place)

    async def _unknown(self, request: Request) -> None:
        if self._discovery.knows_group(request.path):
            raise no_such_path()
        await request.answer_text(404, NOT_FOUND)

    async def _serve_review(self, request: Request) -> None:
        if len(request.parts) != 4:
            raise no_such_path()
        if request.method != "POST":
            raise method_not_allowed()
        await review(request)

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
        document = self._discovery.document(bare)
        if document is None:
            await self._unknown(request)
            return
        any_method = bare.startswith("/apis/") and bare.count("/") == 2
        if request.method != "GET" and not any_method and bare != "/":
            raise method_not_allowed()
        if bare in ("/api", "/apis") and await self._serve_aggregated(request, bare):
            return
        check_produced(request.header(b"accept"), streams=False)
        output = negotiate_or_json(request.header(b"accept"))
        await request.answer_value(200, document, output)

    async def _serve_aggregated(self, request: Request, path: str) -> bool:
        """Serve aggregated discovery if the client accepts it. Raises 406 for other versions."""
        wanted = documents.wants_aggregated(request.header(b"accept"))
        if wanted is None:
            accepted = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
            raise not_acceptable(f"only the following media types are accepted: {accepted}")
        if not wanted:
            return False
        document = self._discovery.aggregated(path)
        tag = documents.etag(document)
        more = [(b"etag", tag.encode()), (b"vary", b"Accept")]
        if request.header(b"if-none-match") == tag:
            await request.answer(304, b"", documents.AGGREGATED, more)
            return True
        body = encode(document, Output(JSON), pretty=False)
        await request.answer(200, body, documents.AGGREGATED, more)
        return True


def _check_route(request: Request, place: RequestTarget) -> None:
    """Raises 415 for an unknown patch type and 406 for an Accept header that nothing satisfies."""
    if request.method == "PATCH":
        given = request.header(b"content-type").partition(";")[0].strip()
        if given not in PATCH_TYPES:
            message = "415: Unsupported Media Type"
            raise failure(415, "UnsupportedMediaType", message, StatusDetails())
    collection = request.method == "GET" and (not place.name or place.watch)
    check_produced(request.header(b"accept"), streams=collection)
