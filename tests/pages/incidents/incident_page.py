"""One incident in history, and its page."""

from __future__ import annotations

import re
from html import unescape

from leases import models
from tests.pages.conftest import text_of
from tests.support.values import incident_rows
from tests.support.values.change_rows import to_row
from tests.support.values.incidents import an_incident

URL = "/c/a/incidents/first/"


def words(answer) -> str:
    text = re.sub(r"<(script|svg).*?</\1>", " ", text_of(answer), flags=re.DOTALL)
    text = re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", text)))
    return text.replace("\N{EN DASH}", "-")


def keep(story=(), **given) -> None:
    """Store an incident as the task does: from the changes that history has."""
    models.ChangeRecord.objects.bulk_create(map(to_row, story))
    members = tuple(map(incident_rows.member_of, story))
    incident_rows.store(an_incident(members=members, **given))
