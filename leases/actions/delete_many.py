"""Delete many Leases: a few at a time, and wait as long as the API server asks.

Source for 429 and Retry-After: k8s.io/client-go/rest/with_retry.go. Like client-go, retry 429 and
5xx; a retry is safe because each delete is conditional on uid and resourceVersion.
"""

import asyncio
import hashlib
import time
import zlib
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime
from enum import StrEnum

import msgspec

from leases.domain.edit import term_of
from leases.domain.lease import Lease, ObjectName
from leases.kube.backoff import Backoff
from leases.kube.lease_client import LeaseClient
from leases.wire.status import ApiError, Conflict, NotFound, TooManyRequests


class ChosenLease(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One Lease. Its delete is conditional on uid and resource_version.

    `term` is set if the Lease was held and is to be deleted all the same: a renewal within that
    term is then no reason to leave it alone.
    """

    namespace: str
    name: str
    uid: str
    resource_version: str
    holder: str | None = None
    renew_time: datetime | None = None
    term: str = ""

    @property
    def key(self) -> ObjectName:
        return ObjectName(self.namespace, self.name)


def chosen(lease: Lease, *, held: bool) -> ChosenLease:
    return ChosenLease(
        lease.key.namespace,
        lease.key.name,
        lease.uid,
        lease.resource_version,
        lease.holder,
        lease.spec.renew_time,
        term_of(lease) if held else "",
    )


def pack(leases: Sequence[ChosenLease]) -> bytes:
    """For the database: 10,000 Leases take about half a megabyte."""
    return zlib.compress(msgspec.json.encode(leases))


def unpack(packed: bytes) -> list[ChosenLease]:
    return msgspec.json.decode(zlib.decompress(packed), type=list[ChosenLease])


def digest(leases: Iterable[tuple[Lease, bool]]) -> str:
    """Identify a choice: names, uids, and whether each is held. Renewals do not change it."""
    sha = hashlib.sha256()
    for lease, held in leases:
        sha.update(f"{lease.key}\0{lease.uid}\0{held}\n".encode(errors="surrogatepass"))
    return sha.hexdigest()


MAX_AT_ONCE = 20
MAX_TRIES_OF_TERM = 5  # to delete a Lease that is renewed all the time
NO_ANSWER = 0  # the code of an ApiError without an answer

Pause = Callable[[float], Awaitable[None]]


class Fate(StrEnum):
    """What became of one Lease."""

    DELETED = "deleted"
    LEFT_ALONE = "left alone"  # it is not as it was when it was chosen
    GONE = "gone"  # it is not there, and whether this delete did it is not known
    REFUSED = "refused"
    NOT_TRIED = "not tried"  # the deletion was stopped before its request was sent
    UNKNOWN = "unknown"  # no answer came


class Answer(msgspec.Struct, frozen=True):
    """What became of one Lease; `code` and `reason` are the API's, 0 without an answer."""

    fate: Fate
    code: int = 200
    reason: str = ""
    detail: str = ""


DELETED = Answer(Fate.DELETED)


class DeleteRequests:
    """Sends the deletes of one run to one cluster.

    `stopped` ends all waiting: nothing more is sent once it is set. `client` may raise ApiError.
    """

    def __init__(
        self,
        client: Callable[[], LeaseClient],
        *,
        stopped: asyncio.Event,
        pause: Pause | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._stopped = stopped
        self._pause = pause or self._wait_or_stop
        self._monotonic = monotonic
        self._places = asyncio.Semaphore(MAX_AT_ONCE)
        self._backoff = Backoff()
        self._not_before = float("-inf")
        self.waits_for = ""  # why nothing is sent just now: a sentence

    async def ready(self) -> None:
        """Wait until the server accepts requests again."""
        while not self._stopped.is_set():
            left = self._not_before - self._monotonic()
            if left <= 0:
                self.waits_for = ""
                return
            await self._pause(left)

    async def delete(self, one: ChosenLease) -> Answer:
        """Delete one Lease. Raises no ApiError."""
        async with self._places:
            return await self._delete(one)

    async def _delete(self, one: ChosenLease) -> Answer:
        version, tries, last = one.resource_version, 0, None
        lost = False  # an answer is missing: an earlier try may have deleted it
        while True:
            await self.ready()
            if self._stopped.is_set():
                return _stopped(last, lost=lost)
            try:
                try:
                    await self._client().delete(one.key, uid=one.uid, resource_version=version)
                except Conflict:
                    current = await self._client().get(one.key)
                    tries += 1
                    if not _may_try_again(one, current, tries):
                        return _left_alone(one, current, lost=lost)
                    version = current.resource_version
                else:
                    self._backoff.reset()
                    return DELETED
            except NotFound:
                return _gone(lost=lost)
            except ApiError as error:
                if not _is_temporary(error):
                    return Answer(Fate.REFUSED, error.status.code, error.status.reason, str(error))
                lost |= error.status.code in (NO_ANSWER, 504)
                last = error
                self._hold_back(error)

    def _hold_back(self, error: ApiError) -> None:
        """Send nothing until the time that the server named, or for a growing time."""
        delay = error.retry_after
        if delay is None:
            delay = self._backoff.delay()
        self._not_before = max(self._not_before, self._monotonic() + delay)
        asks = isinstance(error, TooManyRequests) or error.retry_after is not None
        self.waits_for = (
            f"The API server asks to wait {delay:.0f} s." if asks else f"{error} Trying again."
        )

    async def _wait_or_stop(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._stopped.wait()
        except TimeoutError:
            return


def _is_temporary(error: ApiError) -> bool:
    code = error.status.code
    return code in (NO_ANSWER, 429) or code >= 500


def _may_try_again(one: ChosenLease, current: Lease, tries: int) -> bool:
    """Whether the Lease is still in the term in which it was chosen."""
    return bool(one.term) and term_of(current) == one.term and tries < MAX_TRIES_OF_TERM


def _left_alone(one: ChosenLease, current: Lease, *, lost: bool) -> Answer:
    spec = current.spec
    if current.uid != one.uid:
        if lost:
            text = "No answer came to the first try; somebody has made it anew since."
            return Answer(Fate.GONE, NotFound.code, NotFound.reason, text)
        text = "It was deleted and made anew since it was chosen"
    elif one.term and term_of(current) == one.term:
        text = f"It was renewed during each of {MAX_TRIES_OF_TERM} tries"
    elif current.holder != one.holder:
        text = f"{current.holder or 'Nobody'} holds it now"
    elif spec.renew_time not in (None, one.renew_time):
        text = f"Renewed at {spec.renew_time:%H:%M:%S}"
    else:
        text = "It changed since it was chosen"
    return Answer(Fate.LEFT_ALONE, Conflict.code, Conflict.reason, f"{text}, so it was left alone.")


def _gone(*, lost: bool) -> Answer:
    if lost:
        text = "No answer came to the first try, and at the next one it was gone."
        return Answer(Fate.GONE, NotFound.code, NotFound.reason, text)
    return Answer(
        Fate.GONE, NotFound.code, NotFound.reason, "The API server did not have it any more."
    )


def _stopped(last: ApiError | None, *, lost: bool) -> Answer:
    if lost:
        text = "No answer came before the deletion was stopped: it may be deleted or not."
        return Answer(Fate.UNKNOWN, NO_ANSWER, detail=text)
    if last is None:
        text = "The deletion was stopped before this request was sent."
        return Answer(Fate.NOT_TRIED, NO_ANSWER, detail=text)
    text = "The deletion was stopped before the API server took it."
    return Answer(Fate.REFUSED, last.status.code, last.status.reason, text)
