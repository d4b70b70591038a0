"""Notice that the wall clock jumped, or that nothing could run for a while, and call everything
that keeps moments.

The process goes by `dashboard.clock`. Somebody looks before each event of a watch and four times a
second besides; on the event loop, so that all follow a jump before anything else is judged.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from dashboard.clock import passed
from dashboard.parts.formatting import age, when
from leases.domain.steady_clock import Jump, SteadyClock, moved
from leases.history import trusted_clock

logger = logging.getLogger(__name__)

EVERY = 0.25  # seconds between two looks
SLEPT = 2_000_000_000  # ns that passed while nothing could run; less is normal
STOOD = 3_000_000_000  # ns without a look; less may be a busy process
SHOWN_FOR = timedelta(minutes=10)  # how long pages mention a jump
DOUBTED_FOR = timedelta(days=1)  # how long nothing is deleted for its age after a jump forward
DOUBTED = timedelta(hours=1)  # a jump of more than that

Nanoseconds = Callable[[], int]


class ClockWatch:
    """One per process. `jumps` counts; `says` is a sentence for the pages while a jump is new."""

    def __init__(
        self,
        clock: SteadyClock,
        *,
        passed: Nanoseconds = passed,
        running: Nanoseconds = time.monotonic_ns,
    ) -> None:
        """`passed` goes on while the machine sleeps, `running` stands still."""
        self.clock = clock
        self.jumps = 0
        self._moving = False
        self.on_jump: list[Callable[[Jump], None]] = []
        self.on_sleep: list[Callable[[datetime], None]] = []  # called with the moment it began
        self._passed = passed
        self._running = running
        self._asleep = passed() - running()
        self._looked_at: int | None = None  # by `passed`; None: nobody looks regularly yet
        self._seen: list[tuple[datetime, timedelta]] = []  # jumps of the last day, as of now
        self._sentence = ""

    def now(self) -> datetime:
        return self.clock.now()

    async def run(self) -> None:
        self._looked_at = self._passed()
        while True:
            self.look()
            await asyncio.sleep(EVERY)

    def look(self) -> None:
        """Call the listeners if the clock was set, or nothing could run."""
        self._moving = True
        jump = self.clock.look()
        if jump is not None:
            self._jumped(jump)
        self._moving = False
        asleep = self._passed() - self._running()
        slept, self._asleep = asleep - self._asleep, asleep
        stood = self._since_last_look()
        if slept > SLEPT:
            self._woke(slept, "The machine slept")
        elif stood > STOOD:
            self._woke(stood, "Leaseboard stood still")

    def _since_last_look(self) -> int:
        """Return how many nanoseconds passed since the last look, once somebody looks regularly."""
        if self._looked_at is None:
            return 0
        before, self._looked_at = self._looked_at, self._passed()
        return self._looked_at - before

    @property
    def followed(self) -> int | None:
        """How many jumps all moments that the process keeps have followed; None while some of them
        may not have. For any thread.
        """
        return None if self._moving else self.jumps

    @property
    def says(self) -> str | None:
        """Return the sentence for pages about the last jump."""
        new = self._seen and self.now() - self._seen[-1][0] < SHOWN_FOR
        return self._sentence if new else None

    @property
    def doubtful(self) -> bool:
        """Whether the clock was lately set so far ahead that nothing should be deleted for its
        age: it may have been a mistake.
        """
        now = self.now()
        lately = (by for at, by in self._seen if now - at < DOUBTED_FOR)
        return sum(lately, timedelta(0)) > DOUBTED

    def _jumped(self, jump: Jump) -> None:
        now = jump.after
        lately = ((moved(at, jump.by), by) for at, by in self._seen)
        self._seen = [(at, by) for at, by in lately if now - at < DOUBTED_FOR]
        self._seen.append((now, jump.by))
        self._sentence = sentence(jump)
        logger.warning("%s", self._sentence)
        for follow in self.on_jump:
            try:
                follow(jump)
            except Exception:
                logger.exception("Not everything follows the jump of the clock")
        self.jumps += 1

    def _woke(self, nanoseconds: int, what: str) -> None:
        now, slept = self.now(), timedelta(microseconds=nanoseconds // 1000)
        logger.warning("%s for %s; nothing was watched.", what, age(slept.total_seconds()))
        for follow in self.on_sleep:
            follow(now - slept)


def set_by(jump: Jump) -> str:
    """What happened to the clock, without a full stop."""
    way = "forward" if jump.by > timedelta(0) else "back"
    return f"The clock of this server was set {way} by {age(abs(jump.by).total_seconds())}"


def sentence(jump: Jump) -> str:
    """The same with its times, and what it means to a reader."""
    return (
        f"{set_by(jump)}, from {when(jump.before, jump.after)} to {when(jump.after, jump.before)} "
        "UTC. Leases keep the time they have left. In history, times from before and after do not "
        "fit together."
    )


InThread = Callable[[Callable[[], Any]], Awaitable[Any]]
CONFIRM = "If the clock is right, run: manage.py confirm_clock"


def contradiction(now: datetime, until: datetime) -> str:
    """What pages and `doctor` say of a clock that does not fit to history, without what to do."""
    return (
        f"The clock of this server says {when(now, until)} UTC, but the last moment of a clock "
        f"that is trusted is {when(until, now)} UTC."
    )


class ClockTrust:
    """Whether history may be deleted and counted by the clock (leases/history/trusted_clock.py).

    `trusted` is as of the last look; `says` is a sentence for the pages while it is not.
    """

    def __init__(
        self,
        watch: ClockWatch,
        in_thread: InThread,
        process: str,
        others_agree: Callable[[datetime], bool] = lambda _: False,
    ) -> None:
        """`others_agree`: whether clocks of other machines are as this one."""
        self._watch = watch
        self._in_thread = in_thread
        self._process = process
        self._others_agree = others_agree
        self._since = passed()  # when the clock was last trusted, or this process began
        self.trusted = False
        self.says: str | None = None

    async def look(self) -> bool:
        """Judge the clock, and note that it is right. Raises DatabaseError."""
        now = self._watch.now()
        until = await self._in_thread(partial(trusted_clock.trusted_until, self._process))
        if until is not None:
            await self._in_thread(partial(trusted_clock.keep, until))
        if self._watch.doubtful:
            self._doubt(
                "The clock of this server was lately set far ahead: for a day nothing is deleted "
                "for its age, and reliability is not counted."
            )
            return False
        explained = timedelta(microseconds=(passed() - self._since) // 1000)
        if trusted_clock.agrees(now, until, explained=explained):
            await self._in_thread(partial(trusted_clock.advance, now))
        elif self._others_agree(now):
            await self._in_thread(partial(trusted_clock.trust, now))
        elif until is not None:
            self._doubt(
                f"{contradiction(now, until)} Nothing is deleted for its age, and reliability is "
                f"not counted. {CONFIRM}."
            )
            return False
        self._since, self.trusted, self.says = passed(), True, None
        return True

    def _doubt(self, why: str) -> None:
        self.trusted, self.says = False, why
