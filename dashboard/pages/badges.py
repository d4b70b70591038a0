"""Badges: pictures of the present state, by links that admins make and revoke."""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from typing import Any

import msgspec
from django import forms
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_safe

from dashboard import clock
from dashboard.access.guards import right_required
from dashboard.access.kept_secrets import digest_of, new_token
from dashboard.access.roles import BADGES
from dashboard.access.security_log import SecurityEvent
from dashboard.board import running_board
from dashboard.forms.admin_form import PlainForm
from dashboard.forms.fields import Dropdown, LeaseField
from dashboard.forms.make_and_revoke import MadeByPeople, name_field
from dashboard.lists import responses
from dashboard.parts.formatting import shortened, when
from dashboard.watched_cluster import WatchedCluster
from leases.domain.figures import is_in_trouble
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.phase import Phase
from leases.domain.watched_times import ConnectionState
from leases.models import Badge
from leases.tracking.tracked_lease import Tracked
from leases.wire.microtime import microtime_or_none

MAX_LABEL = 60  # characters
UNKNOWN, ABSENT, NONE = "unknown", "absent", "none"
# White text on these has a contrast of 4.5 or more.
COLOURS = {
    "held": "#1f7a55", "late": "#8f5f00", "expired": "#c42b28", "vacant": "#7645b8",
    "untimed": "#51606f", ABSENT: "#5c6875", UNKNOWN: "#5c6875", NONE: "#5c6875",
}  # fmt: skip
_COUNTED = {
    Phase.HELD: "held", Phase.LATE: "held", Phase.UNTIMED: "held", Phase.VACANT: "vacant",
    Phase.EXPIRED: "expired",
}  # fmt: skip


class BadgeState(msgspec.Struct, frozen=True, kw_only=True):
    """`state` is the worst one, NONE if no Lease has a holder. `as_of` is None when the cluster was
    never read.
    """

    label: str
    state: str
    words: str
    counts: dict[str, int]
    as_of: datetime | None
    now: datetime
    stale: bool

    @property
    def message(self) -> str:
        if self.as_of is None:
            return f"{UNKNOWN}: not read yet"
        moment = f"{when(self.as_of, self.now)} UTC"
        return f"{self.words}, stale since {moment}" if self.stale else f"{self.words}, {moment}"

    @property
    def colour(self) -> str:
        return COLOURS[UNKNOWN if self.stale else self.state]


def badge_state(badge: Badge, cluster: WatchedCluster | None, now: datetime) -> BadgeState:
    """`cluster` is None if it is not watched any more."""
    name = "/".join(filter(None, (badge.namespace, badge.lease))) or badge.cluster
    state, words, counts, as_of = UNKNOWN, UNKNOWN, dict[str, int](), None
    if cluster is not None and cluster.store.known:
        as_of = cluster.read_at(now)
        state, words, counts = _read(badge, cluster)
    live = cluster is not None and cluster.store.connection.shown(now).state is ConnectionState.LIVE
    return BadgeState(
        label=shortened(name, MAX_LABEL),
        state=state if as_of else UNKNOWN,
        words=words,
        counts=counts,
        as_of=as_of,
        now=now,
        stale=not live,
    )


def _read(badge: Badge, cluster: WatchedCluster) -> tuple[str, str, dict[str, int]]:
    if badge.lease:
        tracked = cluster.store.get(ObjectName(badge.namespace, badge.lease))
        if tracked is None:
            return ABSENT, "does not exist", {}
        return tracked.phase.value, tracked.phase.value, {}
    found, trouble = _of_namespace(badge, cluster) if badge.namespace else _of_cluster(cluster)
    counts = {word: found[word] for word in ("held", "vacant", "expired")}
    words = ", ".join(f"{number:,} {word}" for word, number in counts.items())
    state = NONE if trouble == "held" and not counts["held"] else trouble
    return state, words, counts


def _of_namespace(badge: Badge, cluster: WatchedCluster) -> tuple[Counter[str], str]:
    rows = cluster.store.of_namespace(badge.namespace)
    return Counter(_COUNTED[row.phase] for row in rows), _worst(rows)


def _of_cluster(cluster: WatchedCluster) -> tuple[Counter[str], str]:
    found: Counter[str] = Counter()
    for phases in cluster.store.counts().values():
        for phase, number in phases.items():
            found[_COUNTED[phase]] += number
    troubled = cluster.store.select(tuple(Kind), (Phase.EXPIRED, Phase.VACANT))
    return found, _worst(troubled)


def _worst(rows: Iterable[Tracked]) -> str:
    troubled = {
        row.phase for row in rows if is_in_trouble(row.phase, row.kind, excused=row.excused)
    }
    return next((one.value for one in (Phase.EXPIRED, Phase.VACANT) if one in troubled), "held")


MAX_AGE = 15  # seconds for which others may keep it
LETTER, MARGIN = 6.2, 12  # pixels: of a letter at 11 px, and around a text


@require_safe
def badge_svg(request: HttpRequest, token: str) -> HttpResponse:
    shown = _find(token)
    label, message = (round(len(one) * LETTER) for one in (shown.label, shown.message))
    left = label + MARGIN
    context = {
        "badge": shown,
        "left": left,
        "width": left + message + MARGIN,
        "right": message + MARGIN,
        "label_length": label,
        "message_length": message,
        "message_at": left + MARGIN / 2,
        "label_at": MARGIN / 2,
    }
    answer = render(request, "badges/badge.svg", context, content_type="image/svg+xml")
    return _for_a_moment(answer)


@require_safe
def badge_json(_request: HttpRequest, token: str) -> HttpResponse:
    """The first four fields are the endpoint schema of shields.io."""
    shown = _find(token)
    return _for_a_moment(
        responses.json(
            {
                "schemaVersion": 1,
                "label": shown.label,
                "message": shown.message,
                "color": shown.colour,
                "state": shown.state,
                "counts": shown.counts,
                "as_of": microtime_or_none(shown.as_of),
                "stale": shown.stale,
            }
        )
    )


def _find(token: str) -> BadgeState:
    badge = Badge.objects.filter(digest=digest_of(token), revoked_at=None).first()
    if badge is None:
        raise Http404("There is no such badge, or it was revoked. Ask an admin for a new one.")
    return badge_state(badge, running_board().clusters.get(badge.cluster), clock.now())


def _for_a_moment(answer: HttpResponse) -> HttpResponse:
    answer["Cache-Control"] = f"max-age={MAX_AGE}"
    return answer


MAX_BADGES = 1000  # that open


class BadgeForm(PlainForm):
    """What a badge shows: a cluster, a namespace, or one Lease."""

    name = name_field("badge", "Where it is shown, so that it can be revoked without the others.")
    cluster = forms.ChoiceField(label="Cluster", widget=Dropdown())
    lease = LeaseField(help_text="Empty: the whole cluster.")

    def __init__(self, *args: Any, clusters: Iterable[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["cluster"].choices = [(name, name) for name in clusters]  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        if Badge.objects.filter(revoked_at=None).count() >= MAX_BADGES:
            self.add_error("name", f"There are {MAX_BADGES:,} badges. Revoke some first.")
        return super().clean() or {}


class Badges(MadeByPeople[Badge, BadgeForm]):
    """Pictures of the present state."""

    model, route = Badge, "badges"
    templates = ("badges/index.html",)
    guard = staticmethod(right_required(BADGES, "manage badges"))
    made, revoked = SecurityEvent.LINK_CREATED, SecurityEvent.LINK_REVOKED

    def form(self, data: Any) -> BadgeForm:
        return BadgeForm(data, clusters=running_board().clusters)

    def make(self, form: BadgeForm) -> tuple[Badge, dict[str, Any]]:
        token = new_token()
        namespace, lease = form.cleaned_data["lease"]
        badge = Badge.objects.create(
            name=form.cleaned_data["name"],
            digest=digest_of(token),
            cluster=form.cleaned_data["cluster"],
            namespace=namespace,
            lease=lease,
            created_by=self.request.user.get_username(),
            created_at=clock.now(),
        )
        urls = {
            sort: self.request.build_absolute_uri(reverse(f"badge_{sort}", args=[token]))
            for sort in ("svg", "json")
        }
        return badge, {"made": badge, "made_urls": urls}

    def about(self, row: Badge) -> str:
        return f"badge {row.name}"

    def rows(self) -> QuerySet[Badge]:
        return Badge.objects.filter(revoked_at=None)

    def missing(self) -> HttpResponseBase:
        return redirect(self.route)

    def end(self, row: Badge) -> tuple[bool, str]:
        row.revoked_at = clock.now()
        row.save(update_fields=["revoked_at"])
        return True, f"The badge {row.name!r} shows nothing any more."

    def listed(self) -> dict[str, Any]:
        return {"badges": Badge.objects.order_by("-created_at", "-pk")}


badges, revoke_badge = Badges.views()
