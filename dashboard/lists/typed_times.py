"""Times that a person types, in the zone in which a page shows its times.

The server draws all times in UTC; `static/js/zone.js` rewrites them and names its zone in a cookie.
So a time that is typed into a page without scripts means UTC, as that page says. JSON, CSV and
programs always mean UTC.
"""

from collections.abc import Callable
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cache, partial
from zoneinfo import ZoneInfo, available_timezones

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect

COOKIE = "zone"
UTC_ZONE, LOCAL = "UTC", "local"  # beside the names of IANA; LOCAL is that of the browser
_DAY = timedelta(days=1)
_SECOND = timedelta(seconds=1)


@cache
def zone_names() -> tuple[str, ...]:
    """The names of IANA with a place in them, in their order, after UTC."""
    named = (name for name in _known() if "/" in name)
    return (UTC_ZONE, *sorted(name for name in named if not name.startswith("Etc/")))


@cache
def _known() -> set[str]:
    """A browser may call its own zone by an older name than those of the list."""
    return available_timezones()


def is_zone(name: str) -> bool:
    return name == LOCAL or name in zone_names()


class Typing:
    """What one request reads: its zone, what is said about it, and the moments meant in its URL."""

    def __init__(self, zone: ZoneInfo, say: Callable[[str], object]) -> None:
        self.zone = zone
        self._say = say
        self.notes: list[str] = []
        self.moments: dict[str, tuple[str, datetime]] = {}  # parameter: its text, and what it means

    def note(self, sentence: str) -> None:
        if sentence not in self.notes:
            self.notes.append(sentence)
            self._say(sentence)


_typing: ContextVar[Typing | None] = ContextVar("typing", default=None)


def has_zone() -> bool:
    """Whether times are read in another zone than UTC."""
    return _typing.get() is not None


def note(sentence: str) -> None:
    """Say it also on the page that a redirect leads to."""
    typing = _typing.get()
    if typing is not None and sentence:
        typing.note(sentence)


def meant(name: str, text: str, moment: datetime) -> datetime:
    """Keep what a parameter of the URL means that names no zone. Returns the moment."""
    typing = _typing.get()
    if typing is not None:
        typing.moments[name] = text, moment
    return moment


def renamed(name: str, moment: object) -> None:
    """The parameter means another moment than was read at first."""
    typing = _typing.get()
    if typing is not None and name in typing.moments and isinstance(moment, datetime):
        typing.moments[name] = typing.moments[name][0], moment


def in_utc_of(typed: datetime) -> datetime:
    """The moment that a time without a zone means. Says so if the zone has it twice or never."""
    typing = _typing.get()
    if typing is None:
        return typed.replace(tzinfo=UTC)
    moment, sentence = resolve(typed, typing.zone)
    if sentence:
        typing.note(sentence)
    return moment


def at_time_of_day(typed: datetime, latest: datetime, *, ahead: bool = False) -> datetime:
    """The last time before `latest` at which clocks show this time of day, or the next one."""
    typing = _typing.get()
    zone = UTC if typing is None else typing.zone
    today = latest.astimezone(zone).date()
    days = [today + number * _DAY for number in ((0, 1) if ahead else (0, -1))]
    found = [typed.replace(year=day.year, month=day.month, day=day.day) for day in days]
    first = resolve(found[0], zone)[0]
    passes = first > latest if ahead else first <= latest
    return in_utc_of(found[0] if passes else found[1])


def resolve(typed: datetime, zone: tzinfo) -> tuple[datetime, str]:
    """The moment at which clocks of the zone show this, and a sentence if that is not one moment.

    Of two moments it is the first. For a time that clocks skip it is the moment after the jump.
    """
    local = typed.replace(tzinfo=zone, fold=0)
    first, second = local.astimezone(UTC), local.replace(fold=1).astimezone(UTC)
    if first == second:
        return first, ""
    said = f"{typed.day} {typed:%b} {typed.year} {typed:%H:%M:%S}"
    if first < second:
        return first, f"{said} came twice in {zone}, as clocks went back: the first is meant."
    jump = _jump_between(second, first, zone)
    after = f"{jump.astimezone(zone):%H:%M:%S}"
    return jump, f"{said} did not come in {zone}, as clocks went forward: {after} is meant."


def _jump_between(before: datetime, after: datetime, zone: tzinfo) -> datetime:
    """The first second of the new offset."""
    old = before.astimezone(zone).utcoffset()
    low, high = 0, (after - before) // _SECOND
    while low < high:
        middle = (low + high) // 2
        if (before + middle * _SECOND).astimezone(zone).utcoffset() == old:
            low = middle + 1
        else:
            high = middle
    return (before + low * _SECOND).replace(microsecond=0)


def zone_of_typed(request: HttpRequest) -> str:
    """The zone in which the request's typed times are; "" is UTC."""
    name = request.COOKIES.get(COOKIE, UTC_ZONE)
    is_other = name != UTC_ZONE and name in _known() and "format" not in request.GET
    return name if is_other else ""


def answer_in(
    zone: str, request: HttpRequest, get_response: Callable[[HttpRequest], HttpResponseBase]
) -> HttpResponseBase:
    """Read typed times in the zone, and lead a URL with one to the URL of that moment, which means
    the same to everybody.

    It is no middleware: one frame more made History a third slower, as Python's stack grew anew in
    each loop of its templates.
    """
    reads = request.method == "GET"
    # The page that a GET draws first is not shown.
    typing = Typing(ZoneInfo(zone), str if reads else partial(_tell, request))
    token = _typing.set(typing)
    try:
        answer = get_response(request)
    finally:
        _typing.reset(token)
    url = _of_moments(request, typing) if reads and answer.status_code == 200 else ""
    return _lead(request, url, typing.notes) if url else answer


def _of_moments(request: HttpRequest, typing: Typing) -> str:
    """The URL with moments for typed times; "" if it has none."""
    query, changed = request.GET.copy(), False
    for name, (text, moment) in typing.moments.items():
        if query.get(name, "").strip() == text:
            query[name] = moment.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"
            changed = True
    return f"{request.path}?{query.urlencode()}" if changed else ""


def _lead(request: HttpRequest, url: str, notes: list[str]) -> HttpResponseBase:
    """A part of a page has no place for sentences: then load the page."""
    for said in notes:
        _tell(request, said)
    if notes and "HX-Request" in request.headers:
        return HttpResponse(headers={"HX-Redirect": url})
    return redirect(url)


def _tell(request: HttpRequest, said: str) -> None:
    messages.info(request, said, extra_tags=COOKIE)
