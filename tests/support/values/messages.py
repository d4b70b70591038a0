"""Messages of an incident that opens and of one that is over, and how a test sends them."""

from __future__ import annotations

from msgspec.structs import replace

from leases.domain.notify import Stage, Target, message_of
from leases.notify import send_http
from tests.support.values.changes import T0
from tests.support.values.incidents import an_incident

OPEN = an_incident(ended=None, sentence="worker-7 <stopped> & fell")
MESSAGE = message_of(OPEN, Stage.OPENED, receiver=1, step=0, last=None)
OVER = replace(
    message_of(an_incident(), Stage.OVER, receiver=1, step=1, last=MESSAGE), url="http://x/i"
)
SECRET = "a secret that signs"


async def send(sort, url, *messages, secret=""):
    target = Target(url=url, secret=secret)
    return await send_http(sort, target, messages, delivery="d-1", now=T0)
