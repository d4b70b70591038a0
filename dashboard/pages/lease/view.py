"""The page of one Lease, now or as of an instant; for a deleted Lease it shows its history."""

from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard import clock
from dashboard.access.guards import REGIONS, ClusterRequest, viewer_required
from dashboard.access.roles import OVERRIDE_KIND
from dashboard.board import running_board
from dashboard.feed import flapping_of
from dashboard.lists import responses
from dashboard.lists.controls import ListLinks
from dashboard.lists.url_parameters import BadFilter, passed, read_moment, write_moment
from dashboard.pages.lease import overrides, past_terms
from dashboard.pages.lease.fields import fact_groups, yaml_lines
from dashboard.parts import as_of, change_sentence
from dashboard.parts.cluster_write_access import ON_LEASE, known_rights
from dashboard.parts.flapping import flappers_of
from dashboard.parts.formatting import capitalized, when
from dashboard.parts.holdings import holdings_of, host_of
from dashboard.parts.incident_line import incident_line
from dashboard.parts.lease_head import lease_view
from dashboard.parts.lease_item import item_as_of, lease_item
from dashboard.parts.lease_row import FREE_IN_FULL, row_view, time_since
from dashboard.parts.names import cluster_path, holder_view, shown_holder
from dashboard.parts.page_links import LAST_HOUR, ShownTime, history_url, holder_page, lease_pages
from dashboard.parts.time_range import range_for
from leases.domain.figures import is_in_trouble
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.phase import Phase
from leases.domain.terms import PastPhase, PastState
from leases.domain.watched_times import UnwatchedTime
from leases.history import find_changes, outbox
from leases.history.find_changes import BadCursor
from leases.history.indexed_search import HistoryFilter
from leases.history.states_as_of import State, born_later, states_at
from leases.history.watched_spans import watched_since
from leases.tracking.tracked_lease import Tracked


def lease_as_of_view(
    cluster: str,
    standing: PastState,
    *,
    state: State | None,
    at: datetime,
    now: datetime,
    blind: UnwatchedTime | None,
) -> dict[str, Any]:
    word = as_of.stood_when_watched(standing, watched=blind is None)
    css, icon, said = as_of.SIGNS[word]
    return {
        "moment": when(at, now, fine=bool(at.microsecond)),
        "css": css,
        "icon": icon,
        "word": capitalized(said),
        "holder": holder_view(standing.holder),
        "says": _says(cluster, standing, word, at, now),
        "last": as_of.SIGNS[as_of.stood(standing)][2] if word == as_of.UNWATCHED else "",
        "blind": as_of.why_blind(blind),
        "kind": state.kind.value if state else "",
        "excuse": _excuse(state) if word != as_of.UNWATCHED else "",
    }


def _excuse(state: State | None) -> str:
    if state is None:
        return ""
    if not state.excused:
        return FREE_IN_FULL if state.free else ""
    if state.abandoned:
        return "It was abandoned: nobody was expected to hold it again."
    return "It might be vacant: an admin had said so."


def _says(cluster: str, standing: PastState, word: str, at: datetime, now: datetime) -> str:
    if word == as_of.ABSENT:
        return "It was created later."
    if word == "unknown":
        return "Nothing that is remembered says how it stood then."
    if standing.since is None or not standing.exists:
        return ""
    since = when(standing.since, now)
    return f"since {since}, for {time_since(cluster, standing.since, at).length} by then"


AS_OF_CHANGES = 20
AS_OF_USUAL_RANGE = "24h"


def lease_as_of(
    request: ClusterRequest, cluster: str, key: ObjectName, *, now: datetime
) -> HttpResponse:
    """Holder, terms and changes up to `?at=`, from history. Raises BadFilter and BadCursor."""
    at = passed(read_moment(request.GET["at"], "at", now) or now, now)
    tracked = request.cluster.store.get(key)
    until = at + timedelta(microseconds=1)  # include what happened at this very instant
    mine = HistoryFilter(namespace=key.namespace, lease=key.name, until=until)
    found = find_changes.find(
        cluster, mine, before=request.GET.get("before") or None, limit=AS_OF_CHANGES
    )
    after = request.cluster.store.abandoned_after
    state = next(iter(states_at(cluster, [key], at, abandoned_after=after)), None)
    standing = state.standing if state else _not_there(request, key, at, found.total)
    if tracked is None and not found.total and not born_later(cluster, [key], at):
        raise Http404(f"There is no Lease {key} in {cluster}, and history knows none of this name.")
    past, around = _past(request, cluster, key, at, now)
    past["pages"] = lease_pages(cluster, key, state.kind if state else None, around.time)
    context: dict[str, Any] = {
        "namespace": key.namespace,
        "name": key.name,
        "key": str(key),
        "head": lease_as_of_view(
            cluster, standing, state=state, at=at, now=now, blind=as_of.blind_at(cluster, at, now)
        ),
        "past": past,
        "lines": [change_sentence.change_line(change, now) for change in found.changes],
        "older_url": around.links.url(before=found.older) if found.older else "",
        "newest_url": around.links.url(before="") if request.GET.get("before") else "",
        "now_url": request.path if tracked else cluster_path("leases", cluster),
        "there_now": tracked is not None,
        "at": at,
        "leases_url": f"{cluster_path('leases', cluster)}?{urlencode({'at': write_moment(at)})}",
        "history_url": history_url(cluster, key, ShownTime(at=at)),
    }
    return render(request, "leases/detail_as_of.html", context)


def _not_there(request: ClusterRequest, key: ObjectName, at: datetime, changes: int) -> PastState:
    """The state of a Lease without history at that instant: deleted, not created or unknown."""
    if changes:
        return PastState(exists=False, phase=PastPhase.DELETED, since=at)
    tracked = request.cluster.store.get(key)
    if as_of.created_after(tracked, at) or born_later(request.cluster.name, [key], at):
        return as_of.NOT_YET
    return PastState(exists=False, phase=PastPhase.UNKNOWN)


def _past(
    request: ClusterRequest, cluster: str, key: ObjectName, at: datetime, now: datetime
) -> tuple[dict[str, Any], past_terms.LeasePastLinks]:
    """The past up to the instant, and the links around it. Raises BadFilter."""
    wanted = past_terms.read_lease_stretch(request.GET, at, AS_OF_USUAL_RANGE, instant=at)
    around = past_terms.past_links(request.path, wanted, at, watched=watched_since(cluster))
    after = request.cluster.store.abandoned_after
    past = past_terms.read_past(cluster, key, around.shown, now=now, abandoned_after=after)
    end = around.shown.until
    view = past_terms.past_view(key, past, around.choices, now, zoom=around.zoom, end=end)
    return view, around


CHANGES = 20
BESIDE = 8
USUAL_RANGE = "24h"
WITHOUT_HISTORY = frozenset({"facts", "yaml-panel", "renewals"})


@require_safe
@viewer_required
def lease(request: ClusterRequest, cluster: str, namespace: str, name: str) -> HttpResponseBase:
    """Head, past, renewals, changes, fields and YAML; with `?at=`, the Lease as of that instant.

    As JSON it is an item of the list of Leases.
    """
    page = LeasePage(request, cluster, ObjectName(namespace, name))
    try:
        if responses.read_format(request) == "json":
            return responses.json(page.item())
        if request.GET.get("at"):
            return lease_as_of(request, cluster, page.key, now=page.now)
        context = page.context()
    except (BadFilter, BadCursor) as error:
        if request.GET.get("format") == "json":
            return responses.json({"error": str(error)}, status=responses.BAD_REQUEST)
        said = error.said if isinstance(error, BadFilter) else str(error)
        return render(request, "leases/refused.html", page.base() | {"error": said}, status=400)
    return render(request, "leases/detail.html", context)


def _is_lost(tracked: Tracked) -> bool:
    """Whether somebody should hold it, and nobody does."""
    phase = tracked.phase
    trouble = is_in_trouble(phase, tracked.kind, excused=tracked.excused)
    return trouble and phase is not Phase.LATE


class LeasePage:
    """One request for a Lease's page."""

    def __init__(self, request: ClusterRequest, cluster: str, key: ObjectName) -> None:
        self.request = request
        self.cluster = cluster
        self.key = key
        self.now: datetime = clock.now()
        self.as_of = request.cluster.as_of(self.now)
        self.tracked = request.cluster.store.get(key)

    def base(self) -> dict[str, Any]:
        return {"namespace": self.key.namespace, "name": self.key.name, "key": str(self.key)}

    def item(self) -> dict[str, Any]:
        """Raises Http404 and BadFilter."""
        at = read_moment(self.request.GET.get("at", ""), "at", self.now)
        if at is not None:
            return self._item_as_of(passed(at, self.now))
        if self.tracked is None:
            raise Http404(f"Nothing is known of a Lease {self.key} in {self.cluster} now.")
        flapping = flappers_of(self.cluster, self.as_of).get(self.key)
        known = responses.unless_live(self.request.cluster, self.now)
        return lease_item(self.cluster, self.tracked, flapping) | known

    def _item_as_of(self, at: datetime) -> dict[str, Any]:
        after = self.request.cluster.store.abandoned_after
        state = next(iter(states_at(self.cluster, [self.key], at, abandoned_after=after)), None)
        if state is None:
            raise Http404(f"Nothing is known of a Lease {self.key} in {self.cluster} then.")
        watched = as_of.blind_at(self.cluster, at, self.now) is None
        return item_as_of(self.cluster, state, at, watched=watched)

    def context(self) -> dict[str, Any]:
        """The template's context. Raises Http404, BadFilter and BadCursor."""
        wanted = set(self.request.headers.get(REGIONS, "").split())
        context = self.base()
        if self.tracked is not None:
            context |= self._present(self.tracked)
            if wanted and wanted <= WITHOUT_HISTORY:
                return context
        watched = watched_since(self.cluster)
        usual = range_for(watched, self.now, usual=USUAL_RANGE)
        stretch = past_terms.read_lease_stretch(self.request.GET, self.now, usual)
        around = past_terms.past_links(self.request.path, stretch, self.now, watched=watched)
        context |= self._changes(around.links) | self._care()
        if self.tracked is None:
            context["last"] = self._last(context["lines"])
        else:
            context |= self._beside(self.tracked)
        context["past"] = self._past(around)
        return context

    def _present(self, tracked: Tracked) -> dict[str, Any]:
        activity = running_board().feeds[self.cluster].activity
        flapping = flapping_of(activity, tracked, self.as_of)
        head = lease_view(self.cluster, tracked, self.as_of, flapping=flapping)
        intervals = self.request.cluster.renewals.of(tracked)
        unwatched = activity.watched.unwatched(self.as_of - past_terms.RANGES[-1], self.as_of)
        form: dict[str, Any] = {}
        if self.request.user.has_perm(OVERRIDE_KIND):
            said = {
                "kind": tracked.kind.value if tracked.lasting.overridden else overrides.BY_THE_RULES
            }
            form["kind_form"] = overrides.LeaseKindForm(initial=said)
            marked = overrides.MAY if tracked.lasting.may_be_vacant else overrides.MUST_NOT
            form["vacancy_form"] = overrides.LeaseVacancyForm(initial={"may_be_vacant": marked})
            form["marked_by"] = tracked.lasting.may_be_vacant
        rights = known_rights(self.request, self.key.namespace, ON_LEASE)
        not_understood = tracked.lasting.not_understood
        if not_understood is not None and not_understood.before is None:
            return {"lease": head, "rights": rights}
        return form | {
            "lease": head,
            "rights": rights,
            "groups": fact_groups(tracked, self.as_of),
            "yaml": yaml_lines(tracked.lease),
            "renewals": past_terms.renewals_view(
                tracked, intervals, self.as_of, [(one.since, one.until) for one in unwatched]
            ),
        }

    def _care(self) -> dict[str, Any]:
        """What people do about it: its mutes, and who takes care of its incidents."""
        going_on = running_board().feeds[self.cluster].going_on()
        mine = [one for one in going_on if self.key in one.leases]
        care = outbox.care(mine)
        lines = [incident_line(one, self.as_of, care) for one in mine]
        mutes = outbox.mutes_of(self.cluster, self.key, self.now)
        muted = any(row.name for row in mutes)
        return {"mutes": mutes, "muted": muted, "cared": [line for line in lines if line.care]}

    def _changes(self, links: ListLinks) -> dict[str, Any]:
        """A page of changes; the first page includes those not written yet."""
        mine = HistoryFilter(namespace=self.key.namespace, lease=self.key.name)
        before = self.request.GET.get("before") or None
        found = find_changes.find(self.cluster, mine, before=before, limit=CHANGES)
        seq, newest = change_sentence.changes_of(self.cluster, self.key, CHANGES)
        changes = found.changes if before else newest
        older = find_changes.older_than(changes, found, CHANGES)
        return {
            "lines": change_sentence.signed_lines(changes, self.now, self.request.user),
            "writes": change_sentence.last_writes(self.cluster, self.key, self.request.user),
            "feed_seq": None if before else seq,
            "limit": CHANGES,
            "older_url": links.url(before=older) if older else "",
            "newest_url": links.url(before="") if before else "",
            "history_url": history_url(self.cluster, self.key),
            "hour_csv_url": history_url(self.cluster, self.key, LAST_HOUR, "csv"),
            "changes_url": cluster_path("history", self.cluster),
        }

    def _last(self, lines: list[change_sentence.ChangeLine]) -> change_sentence.ChangeLine:
        """The last known change of a Lease that does not exist now."""
        _, newest = change_sentence.changes_of(self.cluster, self.key, 1)
        if not newest:
            raise Http404(
                f"There is no Lease {self.key} in {self.cluster}, "
                "and history knows none of this name."
            )
        return change_sentence.change_line(newest[0], self.now)

    def _past(self, around: past_terms.LeasePastLinks) -> dict[str, Any]:
        shown = around.shown
        known = min(shown.until, max(shown.since, self.as_of))
        end = None if shown.live and self.as_of == self.now else min(shown.until, self.as_of)
        moved = running_board().feeds[self.cluster].clock_moves[-1]
        past = past_terms.read_past(
            self.cluster,
            self.key,
            shown,
            now=self.now,
            known=known,
            goes_on=end is None,
            is_lost=self.tracked is not None and _is_lost(self.tracked),
            moved=self.tracked if moved else None,
            abandoned_after=self.request.cluster.store.abandoned_after,
        )
        view = past_terms.past_view(
            self.key, past, around.choices, self.now, zoom=around.zoom, end=end
        )
        kind = self.tracked.kind if self.tracked else None
        view["pages"] = lease_pages(self.cluster, self.key, kind, around.time)
        return view

    def _beside(self, tracked: Tracked) -> dict[str, Any]:
        cluster = self.request.cluster
        beside = holdings_of(cluster.store).beside(tracked, cluster.pods)
        is_node = tracked.kind is Kind.HEARTBEAT
        if tracked.holder is None or not (beside or is_node):
            return {}
        host = host_of(tracked.holder)
        return {
            "beside": [row_view(self.cluster, one, self.as_of) for one in beside[:BESIDE]],
            "is_node": is_node,
            "beside_more": max(0, len(beside) - BESIDE),
            "host": shown_holder(host),
            "holder_url": holder_page(self.cluster, host),
        }
