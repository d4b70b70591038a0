"""The OpenAPI documents."""

from __future__ import annotations

from leases.apiserver.request import Request
from leases.apiserver.resources import Resource


class OpenApi:
    def __init__(self, resources: tuple[Resource, ...]) -> None:
        self._resources = resources

    async def serve(self, request: Request) -> bool:
        return False
