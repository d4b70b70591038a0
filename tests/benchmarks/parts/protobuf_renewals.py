"""renewals.py in protobuf: CPU that a Lease API server spends on one durable renewal.

python3 -m tests.benchmarks.parts.protobuf_renewals BASE_URL TOKEN SECONDS CLIENTS PID

Each client owns one Lease and renews it by PUT over one kept connection. It sends the metadata
back as it came, as client-go does. Prints what renewals.py prints.
"""

from __future__ import annotations

import asyncio
import ssl
import sys
import time
from urllib.parse import SplitResult, urlsplit

from tests.apiserver.clients import LEASES
from tests.apiserver.codec.proto_client import KIND, field, fields
from tests.apiserver.watch.crowd import cpu_seconds

HEAD = field(1, field(1, "coordination.k8s.io/v1") + field(2, "Lease"))


class Holder:
    """One client with its Lease."""

    def __init__(self, number: int, url: str, token: str, tls: ssl.SSLContext | None) -> None:
        self.url: SplitResult = urlsplit(url)
        self.name = f"protobuf-bench-{number}"
        self.token = token
        self.tls = tls
        # LeaseSpec without its times: holderIdentity, leaseDurationSeconds, leaseTransitions.
        self.spec = field(1, f"host-{number}_x") + field(2, 15) + field(5, 0)
        self.acquired = field(3, field(1, int(time.time())) + field(2, 0))
        self.renewals = self.errors = 0

    async def run(self, until: float) -> None:
        self.reader, self.writer = await asyncio.open_connection(
            self.url.hostname, self.url.port, ssl=self.tls
        )
        path = f"{LEASES}/{self.name}"
        await self._call("DELETE", path)
        _, metadata = await self._call("POST", LEASES, field(1, field(1, self.name)))
        while time.monotonic() < until:
            status, answered = await self._call("PUT", path, metadata)
            if status == 200:
                self.renewals, metadata = self.renewals + 1, answered
            else:
                self.errors += 1
        await self._call("DELETE", path)
        self.writer.close()

    async def _call(self, method: str, path: str, metadata: bytes = b"") -> tuple[int, bytes]:
        """The status and the metadata field of the answer, with its tag."""
        body = b""
        if metadata:
            seconds, nanos = divmod(time.time_ns(), 1_000_000_000)
            renewed = field(4, field(1, seconds) + field(2, nanos // 1000 * 1000))
            raw = metadata + field(2, self.spec + self.acquired + renewed)
            body = b"k8s\0" + HEAD + field(2, raw) + b"\x1a\0\x22\0"
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: {self.url.hostname}\r\n"
            f"Authorization: Bearer {self.token}\r\nContent-Type: {KIND}\r\nAccept: {KIND}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        self.writer.write(head.encode() + body)
        answer = (await self.reader.readuntil(b"\r\n\r\n")).decode().lower()
        size = int(answer.split("content-length:")[1].split("\r\n")[0])
        data = await self.reader.readexactly(size)
        status = int(answer.split()[1])
        if status >= 300 or not data:
            return status, b""
        raw = dict(fields(data[4:]))[2]
        return status, field(1, next(fields(raw))[1])


async def main() -> None:
    url, token, seconds, clients, pid = sys.argv[1:]
    tls = None
    if url.startswith("https"):
        tls = ssl.create_default_context()
        tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    holders = [Holder(number, url, token, tls) for number in range(int(clients))]
    before, start = cpu_seconds(int(pid)), time.monotonic()
    await asyncio.gather(*(holder.run(start + float(seconds)) for holder in holders))
    spent, elapsed = cpu_seconds(int(pid)) - before, time.monotonic() - start
    renewals = sum(holder.renewals for holder in holders)
    print(
        f"renewals {renewals}, errors {sum(holder.errors for holder in holders)}, "
        f"{renewals / elapsed:.0f}/s, server CPU {1000 * spent / max(1, renewals):.2f} ms each"
    )


if __name__ == "__main__":
    asyncio.run(main())
