"""metav1.MicroTime and metav1.Time: RFC 3339 with six digits of fraction, and with none.

Source: k8s.io/apimachinery/pkg/apis/meta/v1/micro_time.go and time.go.
"""

from __future__ import annotations

from datetime import UTC, datetime


def format_microtime(moment: datetime) -> str:
    """An aware moment as Kubernetes writes a MicroTime: `2026-11-20T12:04:23.000001Z`."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def format_time(moment: datetime) -> str:
    """An aware moment as Kubernetes writes a Time, cut to seconds: `2026-11-20T12:04:23Z`."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
