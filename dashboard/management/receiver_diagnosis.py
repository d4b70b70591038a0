"""Examine the receivers of notifications: can each be reached from here? Nothing is sent."""

import asyncio
from urllib.parse import urlsplit

import msgspec
from django.db import Error

from dashboard.access.kept_secrets import CannotUnseal, unseal
from dashboard.parts.cluster_diagnosis import Finding, Level
from leases.domain.notify import Sort, Target
from leases.models import Receiver

CHECK = "receiver"
# The kustomize components of deploy/ that let the connections of a sort out of the cluster.
COMPONENTS = {
    Sort.ALERTMANAGER: "deploy/components/alertmanager",
    Sort.EMAIL: "deploy/components/email",
    Sort.WEBHOOK: "deploy/components/webhook",
}


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where a receiver listens."""

    name: str
    sort: str
    host: str
    port: int


def examine_receivers(*, seconds: float) -> list[Finding]:
    """One line for each receiver that is on. No answer is waited for longer."""
    try:
        receivers = list(Receiver.objects.filter(enabled=True).order_by("name"))
    except Error:
        return []  # the check of the database says why
    findings, places = [], []
    for receiver in receivers:
        try:
            target = unseal(receiver.sealed)
        except CannotUnseal as error:
            found = f"{receiver.name} was stored with another secret key."
            findings.append(Finding(check=CHECK, level=Level.PROBLEM, found=found, do=str(error)))
        else:
            places.append(place_of(receiver.name, receiver.sort, target))
    return findings + asyncio.run(_reach_all(places, seconds))


def place_of(name: str, sort: str, target: Target) -> Place:
    """Only the host of an address may be shown: that of a Slack channel is a secret."""
    if sort == Sort.EMAIL:
        return Place(name=name, sort=sort, host=target.host, port=target.port)
    url = urlsplit(target.url)
    port = url.port or (443 if url.scheme == "https" else 80)
    return Place(name=name, sort=sort, host=url.hostname or "", port=port)


async def _reach_all(places: list[Place], seconds: float) -> list[Finding]:
    return await asyncio.gather(*(_reach(place, seconds) for place in places))


async def _reach(place: Place, seconds: float) -> Finding:
    """Open a connection and close it."""
    where = f"{place.name} ({place.sort}) at {place.host} port {place.port}"
    try:
        async with asyncio.timeout(seconds):
            _, writer = await asyncio.open_connection(place.host, place.port)
    except TimeoutError:
        return _unreachable(place, f"{where} did not answer within {seconds:g} s.")
    except OSError as error:
        return _unreachable(place, f"{where} cannot be reached ({error.strerror or error}).")
    writer.close()
    return Finding(check=CHECK, level=Level.OK, found=f"{where} can be reached.")


def _unreachable(place: Place, found: str) -> Finding:
    do = "Check the address, and that a firewall lets this connection out."
    component = COMPONENTS.get(Sort(place.sort))
    if component:
        do = f"{do} On Kubernetes the NetworkPolicy must allow the port: add {component}."
    return Finding(check=CHECK, level=Level.PROBLEM, found=found, do=do)
