"""A plain renewal on its way from the parser to the store and back, without ASGI between them.

Nearly every request of a Lease API is one. The app gets whatever turns out to be more, as if
nothing had been tried.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

from leases.apiserver.errors import status_body
from leases.apiserver.gojson import dumps
from leases.apiserver.negotiation import JSON
from leases.apiserver.protocol import Protocol
from leases.apiserver.records import Version
from leases.apiserver.renewing import Asked, Renewals, answer_of, asked_of
from leases.apiserver.request import usual_headers
from leases.wire.status import ApiError


class Renewal(RequestResponseCycle):
    """What may be a plain renewal, in the place that uvicorn has for a request and its answer."""

    message_event = asyncio.Event()  # that more has come: nobody waits for it

    def __init__(self, protocol: RenewalProtocol, asked: Asked) -> None:
        self.protocol = protocol
        self.asked = asked
        self.body = bytearray()
        self.more_body = True
        self.keep_alive = protocol.keeps_alive()
        self.disconnected = self.response_complete = False

    def answer(self, stored: Version | None, error: ApiError | None) -> None:
        """Tell the client that its renewal is durable, or why it is not."""
        protocol, transport = self.protocol, self.protocol.transport
        self.response_complete = True
        if transport.is_closing():
            return
        if error is None:
            assert stored is not None  # noqa: S101 - a renewal removes nothing
            code, body = 200, answer_of(stored)
        else:
            code, body = error.status.code, dumps(status_body(error)) + b"\n"
        headers = [
            *protocol.server_state.default_headers,
            *usual_headers(self.asked.audit, JSON),
            (b"content-length", b"%d" % len(body)),
        ]
        if not self.keep_alive:
            headers.append((b"connection", b"close"))
        lines = [b"%s: %s\r\n" % pair for pair in headers]
        transport.writelines([STATUS_LINE[code], *lines, b"\r\n", body])
        if not self.keep_alive:
            transport.close()
        protocol.on_response_complete()


class RenewalProtocol(Protocol):
    """Answers what `renewals` take; the app answers the rest."""

    def __init__(self, renewals: Renewals, *args: Any) -> None:
        super().__init__(*args)
        self._renewals = renewals

    def keeps_alive(self) -> bool:
        version = self.parser.get_http_version()
        return version != "1.0" and bool(self.parser.should_keep_alive())

    def on_headers_complete(self) -> None:
        idle = self.cycle is None or self.cycle.response_complete
        if idle and not self.flow.write_paused and self.parser.get_method() == b"PUT":
            asked = asked_of(self.url, self.headers)
            if asked is not None:
                self._expect_body()
                self.cycle = Renewal(self, asked)
                return
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        renewal = self._being_read()
        super().on_message_complete()
        if renewal and not self._renewals.begin(renewal.asked, renewal.body, renewal.answer):
            self._leave_to_app(renewal)
            super().on_message_complete()

    def _run_out(self) -> None:
        if renewal := self._being_read():
            self._leave_to_app(renewal)
        super()._run_out()

    def _being_read(self) -> Renewal | None:
        cycle = self.cycle
        return cycle if isinstance(cycle, Renewal) and cycle.more_body else None

    def _leave_to_app(self, renewal: Renewal) -> None:
        renewal.response_complete = True
        super().on_headers_complete()
        self.on_body(bytes(renewal.body))
