"""Small words for templates: icons, ages, moments, numbers."""

from __future__ import annotations

from datetime import datetime
from functools import cache

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from dashboard.parts import formatting

register = template.Library()


@register.simple_tag
@cache
def icon(name: str) -> SafeString:
    """A symbol of the sprite, without meaning of its own: `i-edit`, or a state's `st-held`."""
    css = "st" if name.startswith("st-") else "icon"
    return format_html('<svg class="{}" aria-hidden="true"><use href="#{}"/></svg>', css, name)


@register.simple_tag
@cache
def shape(phase: str) -> SafeString:
    """The shape of a state in the colour around it."""
    return format_html('<svg class="st" aria-hidden="true"><use href="#st-{}"/></svg>', phase)


@register.filter
def thousands(number: int) -> str:
    return formatting.thousands(number)


@register.filter
def shortened(text: object, limit: int) -> str:
    """Both ends of what is too long for its place."""
    return formatting.shortened(str(text), limit)


@register.filter
def epoch(moment: datetime) -> float:
    """Seconds since 1970, for the browser's clock."""
    return moment.timestamp()


@register.filter
def clock(moment: datetime) -> str:
    """The time of day in UTC."""
    return formatting.clock(moment)


@register.filter
def moment(moment: datetime, now: datetime) -> str:
    """The time of day in UTC, with the date in front unless it is today's."""
    return formatting.when(moment, now)


@register.filter
def utc(moment: datetime) -> str:
    """For a `datetime` attribute."""
    return formatting.utc(moment)


@register.filter
def dated(moment: datetime) -> str:
    """Date and time of day in UTC."""
    return f"{formatting.day(moment)} {formatting.clock(moment)}"
