"""Settle by what happened to a Lease what its fields only let us guess about its kind."""

from __future__ import annotations

from datetime import timedelta

from leases.domain.holder_identity import split_holder
from leases.domain.kind import RENEWED_SINCE, Kind, Verdict

ALONE = timedelta(days=7)  # renewed by one holder for so long, it is a heartbeat
_SETTLED = "settled by history: "
OTHER_HOLDER: Verdict = (Kind.ELECTION, f"{_SETTLED}another holder took the same Lease")
MADE_ANEW: Verdict = (Kind.LOCK, f"{_SETTLED}deleted while held, and made anew")
RENEWED_ALONE: Verdict = (
    Kind.HEARTBEAT,
    f"{_SETTLED}one holder alone renewed it for {ALONE.days} d",
)


def keep_settled(guess: Verdict, known: Verdict) -> Verdict:
    """Return what is settled of a Lease, unless the rules now do more than guess."""
    return known if _is_guess(guess) and _is_settled(known) else guess


def after_next_holder(known: Verdict, before: str | None, holder: str | None) -> Verdict:
    """Settle the kind of a Lease that goes from one holder to the next, with the same uid.

    A new process on the same host proves nothing.
    """
    if before is None or holder is None or _host(before) == _host(holder):
        return known
    return OTHER_HOLDER if is_open(known) or known == RENEWED_ALONE else known


def after_deletion(known: Verdict, *, held: bool) -> Verdict | None:
    """Return what the next Lease of this name is if its fields only allow a guess."""
    if _is_settled(known):
        return known
    return MADE_ANEW if held and is_open(known) else None


def is_open(verdict: Verdict) -> bool:
    """Whether history may settle it."""
    return verdict == RENEWED_SINCE


def _is_guess(verdict: Verdict) -> bool:
    return verdict[1].startswith("a guess: ")


def _is_settled(verdict: Verdict) -> bool:
    return verdict[1].startswith(_SETTLED)


def _host(holder: str) -> str:
    return split_holder(holder).host or holder
