"""The page of one Lease; for a deleted Lease it shows its history."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from dashboard import clock
from dashboard.access.guards import ClusterRequest, viewer_required
from dashboard.access.roles import OVERRIDE_KIND
from dashboard.board import running_board
from dashboard.pages.lease.as_of_view import lease_as_of
from dashboard.pages.lease.fields import fact_groups
from dashboard.pages.lease.kind_view import BY_THE_RULES, LeaseKindForm
from dashboard.pages.lease.past_terms import past_view, with_held_since
from dashboard.pages.lease.past_terms_query import read_past
from dashboard.pages.lease.renewals import renewals_view
from dashboard.pages.lease.stretch import LeasePastLinks, past_links, read_lease_stretch
from dashboard.pages.lease.vacancy_view import MAY, MUST_NOT, LeaseVacancyForm
from dashboard.pages.lease.yaml_lines import yaml_lines
from dashboard.parts.change_sentence import ChangeLine, change_line
from dashboard.parts.frame.list_controls import ListLinks
from dashboard.parts.frame.responses import REGIONS
from dashboard.parts.frame.write_rights import ON_LEASE, known_rights
from dashboard.parts.holder_name import shown_holder
from dashboard.parts.kept.flapping_leases import flapping_of
from dashboard.parts.kept.holdings import host_of
from dashboard.parts.lease.head import lease_view
from dashboard.parts.lease.page_links import LAST_HOUR, history_url, lease_pages
from dashboard.parts.lease.row import row_view
from dashboard.parts.query.holder_parameter import part_of
from dashboard.parts.query.recent_changes import changes_of
from dashboard.parts.query.time_range import range_for
from dashboard.parts.query.url_parameters import BadFilter
from dashboard.parts.signed_changes import last_writes, signed_lines
from leases.domain.lease import ObjectName
from leases.history.read import find_changes
from leases.history.read.find_changes import BadCursor
from leases.history.read.indexed_search import HistoryFilter
from leases.history.write.watched_spans import watched_since
from leases.tracking.tracked_lease import Tracked

CHANGES = 20
BESIDE = 8
USUAL_RANGE = "24h"
WITHOUT_HISTORY = frozenset({"facts", "yaml-panel", "renewals"})


@require_safe
@viewer_required
def lease(request: ClusterRequest, cluster: str, namespace: str, name: str) -> HttpResponse:
    """Head, past, renewals, changes, fields and YAML; with `?at=`, the Lease as of that instant."""
    page = LeasePage(request, cluster, ObjectName(namespace, name))
    try:
        if request.GET.get("at"):
            return lease_as_of(request, cluster, page.key, now=page.now)
        context = page.context()
    except (BadFilter, BadCursor) as error:
        return render(request, "leases/refused.html", page.base() | {"error": error}, status=400)
    return render(request, "leases/detail.html", context)


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
        stretch = read_lease_stretch(self.request.GET, self.now, usual)
        around = past_links(self.request.path, stretch, self.now, watched=watched)
        context |= self._changes(around.links)
        if self.tracked is None:
            context["last"] = self._last(context["lines"])
        else:
            context |= self._beside(self.tracked)
        context["past"] = self._past(around)
        return context

    def _present(self, tracked: Tracked) -> dict[str, Any]:
        activity = running_board().activity(self.cluster)
        flapping = flapping_of(activity, tracked, self.as_of)
        head = lease_view(self.cluster, tracked, self.as_of, flapping=flapping)
        intervals = self.request.cluster.renewals.of(tracked)
        form: dict[str, Any] = {}
        if self.request.user.has_perm(OVERRIDE_KIND):
            said = {"kind": tracked.kind.value if tracked.lasting.overridden else BY_THE_RULES}
            form["kind_form"] = LeaseKindForm(initial=said)
            marked = MAY if tracked.lasting.may_be_vacant else MUST_NOT
            form["vacancy_form"] = LeaseVacancyForm(initial={"may_be_vacant": marked})
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
            "renewals": renewals_view(tracked, intervals, self.as_of),
        }

    def _changes(self, links: ListLinks) -> dict[str, Any]:
        """A page of changes; the first page includes those not written yet."""
        mine = HistoryFilter(namespace=self.key.namespace, lease=self.key.name)
        before = self.request.GET.get("before") or None
        found = find_changes.find(self.cluster, mine, before=before, limit=CHANGES)
        seq, newest = changes_of(self.cluster, self.key, CHANGES)
        changes = found.changes if before else newest
        return {
            "lines": signed_lines(changes, self.now, self.request.user),
            "writes": last_writes(self.cluster, self.key, self.request.user),
            "feed_seq": None if before else seq,
            "limit": CHANGES,
            "older_url": links.url(before=found.older) if found.older else "",
            "newest_url": links.url(before="") if before else "",
            "history_url": history_url(self.cluster, self.key),
            "hour_csv_url": history_url(self.cluster, self.key, LAST_HOUR, "csv"),
            "changes_url": reverse("history", args=[self.cluster]),
        }

    def _last(self, lines: list[ChangeLine]) -> ChangeLine:
        """The last known change of a Lease that does not exist now."""
        _, newest = changes_of(self.cluster, self.key, 1)
        if not newest:
            raise Http404(
                f"There is no Lease {self.key} in {self.cluster}, "
                "and history knows none of this name."
            )
        return change_line(newest[0], self.now)

    def _past(self, around: LeasePastLinks) -> dict[str, Any]:
        shown = around.shown
        known = min(shown.until, max(shown.since, self.as_of))
        past = read_past(self.cluster, self.key, shown, now=self.now, known=known)
        end = None if shown.live and self.as_of == self.now else min(shown.until, self.as_of)
        view = past_view(past, around.choices, self.now, zoom=around.zoom, end=end)
        kind = self.tracked.kind if self.tracked else None
        view["pages"] = lease_pages(self.cluster, self.key, kind, around.time)
        hub = running_board().publisher.hubs[self.cluster]
        if self.tracked and self.tracked.held_since and hub.clock_moves[-1]:
            return with_held_since(view, self.tracked.held_since, self.now)
        return view

    def _beside(self, tracked: Tracked) -> dict[str, Any]:
        beside = self.request.cluster.holdings.beside(tracked)
        if not beside or tracked.holder is None:
            return {}
        host = host_of(tracked.holder)
        query = urlencode({"q": part_of(host)})
        return {
            "beside": [row_view(self.cluster, one, self.as_of) for one in beside[:BESIDE]],
            "beside_more": max(0, len(beside) - BESIDE),
            "host": shown_holder(host),
            "holders_url": f"{reverse('holders', args=[self.cluster])}?{query}",
        }
