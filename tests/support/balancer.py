"""A TCP proxy on loopback that spreads connections over the replicas that are ready."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

PROBE = b"GET /readyz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Balancer:
    """`ready` holds the ports that get new connections, the next one first."""

    def __init__(self, ports: Sequence[int]) -> None:
        self.port = 0
        self._ports = ports
        self.ready = list(ports)
        self._open: set[asyncio.Task[None]] = set()

    async def probe(self, port: int) -> bool:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            return False
        try:
            writer.write(PROBE)
            return b" 200 " in await reader.readline()
        except OSError:
            return False
        finally:
            writer.close()

    async def watch(self) -> None:
        while True:
            for port in self._ports:
                ready = await self.probe(port)
                if ready and port not in self.ready:
                    self.ready.append(port)
                elif not ready and port in self.ready:
                    self.ready.remove(port)
            await asyncio.sleep(0.1)

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            upstream = await self._next()
            if upstream is not None:
                await asyncio.gather(_copy(reader, upstream[1]), _copy(upstream[0], writer))
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            self._open.discard(task)
            writer.close()

    async def _next(self) -> Streams | None:
        """Connect to the next replica that listens."""
        for port in list(self.ready):
            self.ready.append(self.ready.pop(0))
            with suppress(OSError):
                return await asyncio.open_connection("127.0.0.1", port)
        return None

    async def cut_for(self, seconds: float) -> None:
        """End all connections, and every new one at once, for so long."""
        self.ready.clear()
        await asyncio.gather(*self.cut(), return_exceptions=True)
        await asyncio.sleep(seconds)
        self.ready[:] = self._ports

    def cut(self) -> list[asyncio.Task[None]]:
        """End all connections; returns their tasks, which are about to end."""
        for task in self._open:
            task.cancel()
        return [*self._open]


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()


@asynccontextmanager
async def balancing(ports: Sequence[int], *, probing: bool = True) -> AsyncIterator[Balancer]:
    """A balancer over these, which listens on `port`."""
    balancer = Balancer(ports)
    server = await asyncio.start_server(balancer.take, "127.0.0.1", 0)
    watching = [asyncio.create_task(balancer.watch())] if probing else []
    try:
        balancer.port = server.sockets[0].getsockname()[1]
        yield balancer
    finally:
        for task in watching:
            task.cancel()
        server.close()
        await asyncio.gather(*watching, *balancer.cut(), return_exceptions=True)
        await asyncio.sleep(0)  # in which the transports close
