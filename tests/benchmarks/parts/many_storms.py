"""Many leasestorms in one process, each the Lease API of a cluster of its own.

python3 -m tests.benchmarks.parts.many_storms FOLDER FAULTS SLOW PORT... -- [OPTIONS OF LEASESTORM]

Cluster number N listens on the Nth port and writes what it did to FOLDER/truth-N. Ends when each
has been asked to quit.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from asyncio import StreamReader, StreamWriter
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path

from tests.benchmarks import leasestorm
from tests.support.processes import free_port

LATE = 0.5  # seconds until what a slow cluster says arrives


async def play(folder: Path, ports: list[str], options: list[str], faults: int, slow: int) -> None:
    """The first `faults` clusters cut every watch again and again, the last `slow` answer late."""
    storms = []
    for number, port in enumerate(ports):
        behind = port if number < len(ports) - slow else str(free_port())
        if behind != port:
            await answer_late(int(port), int(behind))
        own = ["--port", behind, "--truth", str(folder / f"truth-{number}"), "--seed", str(number)]
        if number < faults:
            own += ["--drop-every", "7", "--gone-every", "17"]
        asked = leasestorm.arguments([*options, *own])
        storms.append(leasestorm.amain(asked, leasestorm.World(asked)))
    gc.freeze()
    await asyncio.gather(*storms)


async def answer_late(port: int, behind: int) -> None:
    """Pass on at once what is asked at `port`, and `LATE` what comes back."""
    open_now = set()

    async def connect(reader: StreamReader, writer: StreamWriter) -> None:
        answers, questions = await asyncio.open_connection("127.0.0.1", behind)
        with closing(writer), closing(questions):
            try:
                async with asyncio.TaskGroup() as both:
                    asks = both.create_task(_pass_on(reader, questions, 0.0))
                    await _pass_on(answers, writer, LATE)
                    asks.cancel()
            except* OSError:
                pass  # a break of one side is the end of both

    def accept(reader: StreamReader, writer: StreamWriter) -> None:
        open_now.add(task := asyncio.create_task(connect(reader, writer)))
        task.add_done_callback(open_now.discard)

    await asyncio.start_server(accept, "127.0.0.1", port)


async def _pass_on(reader: StreamReader, writer: StreamWriter, late: float) -> None:
    """Each piece `late` seconds after it came, until the end or a break of either side."""
    waiting: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
    clock = asyncio.get_running_loop().time

    async def write() -> None:
        while True:
            due, data = await waiting.get()
            await asyncio.sleep(due - clock())
            if not data:
                return
            writer.write(data)
            await writer.drain()

    writes = asyncio.create_task(write())
    try:
        data = b"-"
        while data and not writes.done():
            with suppress(OSError):  # a break is an end, too
                data = b""
                data = await reader.read(1 << 16)
            waiting.put_nowait((clock() + late, data))
        await writes
    finally:
        writes.cancel()


def main(arguments: Sequence[str]) -> None:
    split = arguments.index("--")
    folder, faults, slow, *ports = arguments[:split]
    load = [*arguments[split + 1 :]]
    asyncio.run(play(Path(folder), ports, load, int(faults), int(slow)))


if __name__ == "__main__":
    main(sys.argv[1:])
