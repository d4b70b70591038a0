"""Receivers of messages with a test message queued, made by another process than the server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.support.processes import manage

SCRIPT = """
import json
import msgspec
from django.utils import timezone
from dashboard.access.kept_secrets import seal
from leases.domain.incident import Cause, Confidence
from leases.domain.notify import Choice, Gravity, Message, Stage, Target
from leases.history.deliveries import queue_test
from leases.models import Receiver

now = timezone.now()
for name, (sort, target) in json.loads(%r).items():
    one = Receiver.objects.create(
        name=name, sort=sort, sealed=seal(msgspec.convert(target, Target)), created_at=now,
        choice=msgspec.json.encode(Choice()).decode())
    queue_test(one.pk, Message(
        id="", stage=Stage.TEST, cluster="test", incident="test", cause=Cause.UNKNOWN,
        confidence=Confidence.CERTAIN, severity=Gravity.INFO, sentence="a test", began=now,
        ended=None, leases=(), leases_total=0, hosts=(), hosts_total=0, worst_gap_seconds=None,
    ), now)
"""


def by_http(port: int, host: str = "127.0.0.1") -> tuple[str, dict[str, Any]]:
    return "webhook", {"url": f"http://{host}:{port}/"}


def by_mail(port: int, host: str = "127.0.0.1") -> tuple[str, dict[str, Any]]:
    return "email", {
        "host": host, "port": port, "security": "none", "sender": "a@b", "to": ["c@d"],
    }  # fmt: skip


def make_receivers(data: Path, wanted: dict[str, tuple[str, dict[str, Any]]]) -> None:
    """By name: the sort and the target."""
    done = manage(data, "shell", "-c", SCRIPT % json.dumps(wanted))
    assert done.returncode == 0, done.stderr
