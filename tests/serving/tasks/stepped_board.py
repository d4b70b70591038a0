"""A server whose wall clock a test sets, its API, and a person who looks at it."""

from __future__ import annotations

import json
import signal
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.support.api_client import LeaseApi
from tests.support.processes import Server, get, wait_for
from tests.support.signing_in import signed_in

HOUR, DECADE = 3600, 3650 * 86400
STEPS = (HOUR, -HOUR, DECADE, -DECADE)
SAID = "The clock of this server was set"


class Board:
    """A server whose clock is set, its API, and a person who looks."""

    def __init__(self, data: Path, steps: tuple[int, ...] = STEPS) -> None:
        program = ("-m", "tests.serving.tasks.stepped")
        seconds = ",".join(map(str, steps))
        self.server = Server(data, "--no-demo", program=program, STEPS=seconds)
        self.server.wait_synced()
        self.api = LeaseApi(self.server.kubeconfig)
        self.browser = signed_in(self.server)

    def text(self, path: str) -> str:
        with self.browser.open(f"{self.server.url}/c/embedded/{path}", timeout=60) as answer:
            text: str = answer.read().decode()
            return text

    def asked(self, path: str) -> Any:
        return json.loads(self.text(path))

    def lease(self, name: str) -> tuple[dict[str, Any], datetime]:
        answer = self.asked(f"leases/?format=json&q={name}")
        (item,) = answer["items"]
        return item, moment(answer["now"])

    def left(self, name: str) -> float:
        """Seconds until a Lease runs out."""
        item, now = self.lease(name)
        return (moment(item["expires_at"]) - now).total_seconds()

    def take(self, name: str, number: int) -> None:
        """Another holder, the one of this number."""
        holder = f"h-{number}"
        self.api.take(name, holder=holder, transitions=number)
        wait_for(lambda: self.lease(name)[0]["holder"] == holder, what="the new holder")

    def jumps(self) -> int:
        (line,) = [
            line
            for line in get(f"{self.server.url}/metrics")[1].splitlines()
            if line.startswith("leaseboard_clock_jumps_total")
        ]
        return int(float(line.split()[1]))

    def step(self) -> None:
        number = self.jumps() + 1
        self.server.process.send_signal(signal.SIGUSR1)
        wait_for(lambda: self.jumps() == number, what="the jump")


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)
