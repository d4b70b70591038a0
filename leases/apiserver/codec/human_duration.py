"""Ages as kubectl shows them."""

from __future__ import annotations

from datetime import datetime


def age(created: str | None, now: datetime) -> str:
    if created is None:
        return "<unknown>"
    return human_duration(int((now - datetime.fromisoformat(created)).total_seconds()))


def human_duration(seconds: int) -> str:
    """A duration in at most two units. Source: apimachinery/pkg/util/duration."""
    if seconds < -1:
        return "<invalid>"
    seconds = max(seconds, 0)
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if seconds < 120:
        return f"{seconds}s"
    if minutes < 10:
        return _two(minutes, "m", seconds % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if hours < 192:
        return _two(days, "d", hours % 24, "h")
    if days < 730:
        return f"{days}d"
    if days < 2920:
        return _two(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _two(large: int, unit: str, small: int, small_unit: str) -> str:
    return f"{large}{unit}{small}{small_unit}" if small else f"{large}{unit}"
