"""Send the messages that wait, and delete old ones."""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Any

from django.conf import settings
from django.db import DatabaseError, connection
from django.urls import reverse
from msgspec.structs import replace

from dashboard.access.kept_secrets import CannotUnseal, unseal
from leases.domain.notify import Message, Sort, Stage
from leases.history import deliveries, outbox
from leases.models import Acknowledgement, QuietTime, Receiver
from leases.notify import DeliveryOutcome, send_http, send_mail

logger = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
FORGET_LOOKS = 60  # looks between two deletions of old messages
_tables = (one._meta.db_table for one in (Receiver, Acknowledgement, QuietTime))  # noqa: SLF001 - documented
ANYTHING = f"SELECT {', '.join(f'EXISTS (SELECT 1 FROM {name})' for name in _tables)}"  # noqa: S608


def _in_words(care: outbox.Care) -> set[tuple[str, str, str, datetime | None]]:
    """Who has which incident of which cluster in hand, and since when it is over for them."""
    return {(*where, row.who, row.over_at) for where, row in care.taken.items()}


class Notifications:
    """One per process. `run` may be called again after it died."""

    def __init__(
        self,
        in_thread: Callable[[Callable[[], Any]], Awaitable[Any]],
        clusters: Collection[str],
        process: str,
        clock: Callable[[], datetime],
        trusted: Callable[[], bool] = lambda: True,
        paused: Callable[[str], bool] = lambda _cluster: False,
    ) -> None:
        """`trusted` says whether the age of a message is known, so that it may be given up;
        `paused`, whether a cluster is not watched because somebody wants it so.
        """
        self._in_thread = in_thread
        self._clusters = clusters
        self._process = process
        self._clock = clock
        self._trusted, self._paused = trusted, paused
        self._sending: dict[asyncio.Task[None], int] = {}  # with the receiver
        self._wake = asyncio.Event()
        self.outcomes: Counter[tuple[str, str]] = Counter()  # by sort of receiver and outcome
        # As of the last look, of all replicas.
        self.failing: Sequence[deliveries.FailingReceiver] = ()
        self.care = outbox.Care()
        self.cared: Callable[[str], None] = lambda _cluster: None  # what people do there is new

    @property
    def watched(self) -> list[str]:
        """The clusters whose incidents are known to go on."""
        return [name for name in self._clusters if not self._paused(name)]

    async def run(self) -> None:
        """Look again and again, until cancelled."""
        looks = 0
        try:
            while True:
                try:
                    await self._look()
                    if looks % FORGET_LOOKS == 0 and self._trusted():
                        await self._in_thread(partial(deliveries.forget_messages, self._clock()))
                except DatabaseError as error:
                    logger.warning("Messages that wait cannot be read just now: %s", error)
                looks += 1
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_SECONDS):
                        await self._wake.wait()
                self._wake.clear()
        finally:
            for task in self._sending:
                task.cancel()
            await asyncio.gather(*self._sending, return_exceptions=True)
            self._sending.clear()
            with suppress(DatabaseError):
                await self._in_thread(partial(deliveries.release, self._process))

    async def _look(self) -> None:
        for task in [task for task in self._sending if task.done()]:
            del self._sending[task]
            task.result()  # raises what nobody expected
        busy = set(self._sending.values())
        before = _in_words(self.care)
        due = await self._in_thread(partial(self._claim, self._clock(), busy))
        for cluster in {cluster for (cluster, *_) in before ^ _in_words(self.care)}:
            self.cared(cluster)
        for delivery in due:
            task = asyncio.create_task(self._send(delivery))
            self._sending[task] = delivery.receiver

    def _claim(self, now: datetime, busy: set[int]) -> Sequence[deliveries.Delivery]:
        """Return what is due. With nobody to tell and nothing muted, one small query says so."""
        with connection.cursor() as cursor:
            cursor.execute(ANYTHING)
            if not any(cursor.fetchone()):
                self.failing, self.care = (), outbox.Care()
                return ()
        due = deliveries.claim(self._process, now, busy)
        busy |= {delivery.receiver for delivery in due}
        due += deliveries.claim_refreshes(now, watched=self.watched, busy=busy)
        self.failing, self.care = deliveries.failing_receivers(), outbox.care()
        return due

    async def _send(self, delivery: deliveries.Delivery) -> None:
        """Send once, note how it ended, and let the loop look for the next delivery."""
        try:
            outcome = await _attempt(delivery, self._clock())
        except Exception as error:  # it must not stop the messages to other receivers
            logger.exception("The delivery %s failed on an unexpected error", delivery.id)
            outcome = DeliveryOutcome(f"It failed on an unexpected error ({type(error).__name__}).")
        self.outcomes[delivery.sort.value, "failed" if outcome.error else "sent"] += 1
        if outcome.error:
            logger.warning(
                "The receiver %r did not take the delivery %s (attempt %d): %s",
                delivery.name, delivery.id, delivery.attempt, outcome.error,
            )  # fmt: skip
        ended = partial(
            deliveries.finish,
            delivery,
            self._process,
            self._clock(),
            error=outcome.error,
            retry_after=outcome.retry_after,
            may_give_up=self._trusted(),
        )
        try:
            await self._in_thread(ended)
        except DatabaseError as error:
            # The claim ends by itself; then it is sent again under the same id.
            logger.warning("The end of the delivery %s is not noted: %s", delivery.id, error)
        self._wake.set()


async def _attempt(delivery: deliveries.Delivery, now: datetime) -> DeliveryOutcome:
    try:
        target = unseal(delivery.sealed)
    except CannotUnseal as error:
        return DeliveryOutcome(str(error))
    messages = [_with_url(message, delivery) for message in delivery.messages]
    if delivery.sort is not Sort.EMAIL:
        return await send_http(delivery.sort, target, messages, delivery=delivery.id, now=now)
    return await send_mail(target, messages, delivery=delivery.id, now=now)


def _with_url(message: Message, delivery: deliveries.Delivery) -> Message:
    """Add the address of the incident's page: below LEASEBOARD_URL, else where an admin came to."""
    base = settings.LEASEBOARD.url or delivery.address
    if not base:
        return message
    path = f"{reverse('notification_log')}?receiver={delivery.receiver}"
    if message.stage is not Stage.TEST:
        path = reverse("incident", args=[message.cluster, message.incident])
    return replace(message, url=base + path)
