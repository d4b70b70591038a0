"""What a cluster would refuse, to be shown beside the buttons that lead to the forms."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode

import msgspec
from django.urls import reverse

from dashboard.access.guards import ClusterRequest, may_edit
from dashboard.parts.kept.write_access import WriteAccess, known_access

ON_LEASE, ON_LIST = ("patch", "delete"), ("create", "delete")  # the verbs of each page's buttons


class WriteRights(msgspec.Struct, frozen=True):
    """`refused` are verbs with their reasons; `ask_url` gives the rest, "" if all is known."""

    refused: tuple[tuple[str, WriteAccess], ...]
    ask_url: str = ""


def known_rights(
    request: ClusterRequest, namespace: str, verbs: tuple[str, ...]
) -> WriteRights | None:
    """The answers of the last minute, without asking; None for those who may not edit."""
    if not may_edit(request.user):
        return None
    known = {verb: known_access(request.cluster, request.user, namespace, verb) for verb in verbs}
    found = {verb: access for verb, access in known.items() if access is not None}
    if len(found) == len(verbs):
        return rights_of(found)
    query = urlencode({"namespace": namespace, "verbs": ",".join(verbs)})
    return WriteRights((), f"{reverse('write_rights', args=[request.cluster.name])}?{query}")


def rights_of(answers: Mapping[str, WriteAccess]) -> WriteRights:
    """Keep what is refused, each reason once."""
    refused: dict[str, tuple[str, WriteAccess]] = {}
    for verb, access in answers.items():
        if access.allowed is False or access.partly:
            refused.setdefault(access.sentence, (verb, access))
    return WriteRights(tuple(refused.values()))
