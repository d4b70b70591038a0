"""The actions on one Lease: edit, release, hand over, delete, edit as YAML; and what is allowed."""

from collections.abc import Sequence
from datetime import timedelta
from enum import IntEnum
from itertools import chain
from typing import Any

import msgspec
from asgiref.sync import sync_to_async
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard.access.guards import check_editor, find_cluster
from dashboard.forms import edit_form
from dashboard.forms.form_page import LeaseActionPage, VerdictView, form_view
from dashboard.forms.what_happens import WhatHappens, of_delete, of_edit, of_hand_over, of_release
from dashboard.forms.yaml_form import YamlForm, YamlProblem, as_text
from dashboard.lists.url_parameters import BadFilter, one_of, text
from dashboard.parts.cluster_write_access import ON_LEASE, ON_LIST, may_write_each, rights_of
from dashboard.parts.formatting import when
from dashboard.parts.holder_place import pod_state
from dashboard.parts.holdings import holdings_of, host_of
from dashboard.parts.names import MAX_IDENTITY, holder_view, told_apart
from leases.actions.write_lease import DryRun
from leases.domain import edit
from leases.domain.cause.clue import contender
from leases.domain.cause.facts import PodFact
from leases.domain.election import CandidateState, standing
from leases.domain.phase import Phase
from leases.domain.terms import Term
from leases.history.timeline_lanes import lanes
from leases.kube.holder_pods import Reading, pod_questions
from leases.kube.lease_client import candidates_of
from leases.wire.status import ApiError, NotFound
from leases.wire.watch_decoding import lease_of


class EditPage(LeaseActionPage[edit_form.EditForm]):
    template = "forms/edit.html"
    form_class = edit_form.EditForm

    def initial(self) -> dict[str, Any]:
        """The present values; `?holder=` fills in another holder."""
        initial = edit_form.initial_of(self.tracked.lease)
        if "holder" in self.request.GET:
            initial["holder_identity"] = self.request.GET["holder"]
        return initial

    def previewed(self, form: edit_form.EditForm, verdict: DryRun) -> edit_form.EditForm:
        current = lease_of(verdict.before)
        return self.made(form.rebased(verdict.before, current), current=current)

    def what_happens(self, form: edit_form.EditForm) -> WhatHappens | None:
        if not form.is_bound or not form.is_valid():
            return None
        return of_edit(self.tracked, form.wanted(), self.now)


LOOKS_BACK = timedelta(days=30)
MAX_CHOICES = 6
MAX_ASKED = 24  # former holders whose Pods are asked for
WITHIN = 3.0  # seconds for the list of candidates, and for the Pods


class _Rank(IntEnum):
    """What shows that a holder to choose runs; the first ones come first."""

    CANDIDATE = 0
    RENEWS = 1
    POD_RUNS = 2
    UNKNOWN = 3
    SILENT = 4  # a candidate that does not answer
    GONE = 5


class HandOverPage(LeaseActionPage[edit_form.HandOverForm]):
    template = "forms/hand_over.html"
    form_class = edit_form.HandOverForm
    choices: tuple[edit_form.NextHolder, ...] = ()

    async def prepare(self) -> None:
        """Those that are seen to run come first; those that are gone last."""
        candidates = await self._candidates() if edit.is_coordinated(self.tracked.lease) else ()
        before = await sync_to_async(self._before)()
        named = {one.identity for _, one in candidates}
        others = await self._judged([one for one in before if one.holder not in named])
        ranked = sorted([*candidates, *others], key=lambda one: one[0])
        choices = [one for _, one in ranked[:MAX_CHOICES]]
        holder = [] if self.is_gone else [self.tracked.holder or ""]
        shown = told_apart([*(one.view.identity for one in choices), *holder])
        self.choices = tuple(
            msgspec.structs.replace(one, shown=shown[one.view.identity]) for one in choices
        )

    def initial(self) -> dict[str, Any]:
        """`?holder=` chooses a holder."""
        initial = super().initial()
        if wanted := self.request.GET.get("holder", ""):
            known = any(one.identity == wanted for one in self.choices)
            initial |= {"to": wanted} if known else {"to": edit_form.ANOTHER, "other": wanted}
        return initial

    def given(self) -> dict[str, Any]:
        return {"choices": self.choices, "holder": None if self.is_gone else self.tracked.holder}

    def what_happens(self, form: edit_form.HandOverForm) -> WhatHappens | None:
        to = form.chosen
        if form.is_bound and form.is_valid():
            to = form.cleaned_data["next"]
        return of_hand_over(self.tracked, to, self.now) if to else None

    async def _candidates(self) -> list[tuple[_Rank, edit_form.NextHolder]]:
        """The LeaseCandidates; none if the cluster does not tell."""
        try:
            found = await candidates_of(self.cluster.writer, self.key, within=WITHIN) or ()
        except ApiError:
            return []
        return [
            (
                _Rank.CANDIDATE if state is CandidateState.READY else _Rank.SILENT,
                edit_form.NextHolder(one.name, view, f"candidate, {state.value}"),
            )
            for one in found
            if one.name != self.tracked.holder and (view := holder_view(one.name)) is not None
            for state in [standing(one, self.now)]
        ]

    def _before(self) -> list[Term]:
        """The last term of each that held it before, the latest first."""
        since = self.now - LOOKS_BACK
        found = lanes(self.cluster.name, [self.key], since=since, until=self.now)
        terms: dict[str, Term] = {}
        for term in reversed(found[0].life.terms if found else ()):
            typed = term.holder.isprintable() and len(term.holder) <= MAX_IDENTITY
            if typed and term.until is not None and term.holder != self.tracked.holder:
                terms.setdefault(term.holder, term)
        return list(terms.values())[:MAX_ASKED]

    async def _judged(self, terms: list[Term]) -> list[tuple[_Rank, edit_form.NextHolder]]:
        """Those that held it, by what shows that they run: a Lease that they renew, or a Pod."""
        asked = {one.holder: pod_questions(self.key, one.holder) for one in terms}
        told = await self.cluster.pods.ask(chain.from_iterable(asked.values()), within=WITHIN)
        found = []
        for term in terms:
            view = holder_view(term.holder)
            if view is None:
                continue
            rank, runs = self._runs(term, [told[one] for one in asked[term.holder]])
            held = f"held it until {when(term.until, self.now)}" if term.until else ""
            note = "; ".join(filter(None, (runs, held)))
            found.append((rank, edit_form.NextHolder(term.holder, view, note)))
        return found

    def _runs(self, term: Term, told: Sequence[Reading | None]) -> tuple[_Rank, str]:
        store = self.cluster.store
        held = (store.get(one.key) for one in holdings_of(store).held_on(host_of(term.holder)))
        seen = (one for one in held if one and one.phase is Phase.HELD and one.renewals_seen)
        if (renewed := next((one for one in seen if one.holder == term.holder), None)) is not None:
            return _Rank.RENEWS, f"renews {renewed.key} now"
        pods = [one for each in told if each for one in each.facts if isinstance(one, PodFact)]
        pod = next((one for one in pods if not one.gone), None)
        who = contender(term.holder)
        if pod is None or who is None:
            gone = len(pods) == len(told) and who is not None and who.is_pod
            return (_Rank.GONE, "there is no Pod of this name") if gone else (_Rank.UNKNOWN, "")
        said, phase = pod_state(pod, self.now)
        if phase == "expired":
            return _Rank.GONE, f"its Pod {said}"
        anew = pod.started_at is not None and pod.started_at > term.since
        if who.has_suffix and anew:  # the identity is that of one process
            return _Rank.GONE, f"its process is gone: its Pod {said}"
        return _Rank.POD_RUNS if phase == "held" else _Rank.UNKNOWN, f"its Pod {said}"


class ReleasePage(LeaseActionPage[edit_form.ReleaseForm]):
    template = "forms/release.html"
    form_class = edit_form.ReleaseForm
    asks_when_opened = True

    def what_happens(self, form: edit_form.ReleaseForm) -> WhatHappens | None:
        return of_release(self.tracked, self.now, self.as_of)


class DeletePage(LeaseActionPage[edit_form.DeleteForm]):
    template = "delete/lease.html"
    form_class = edit_form.DeleteForm
    verb = "delete"
    asks_when_opened = True
    asks_before_writing = False
    writes_at_once = True

    def given(self) -> dict[str, Any]:
        return {"key": self.key}

    def what_happens(self, form: edit_form.DeleteForm) -> WhatHappens | None:
        return of_delete(self.tracked, self.as_of)


class YamlPage(LeaseActionPage[YamlForm]):
    template = "forms/yaml.html"
    form_class = YamlForm
    whole: dict[str, Any] = {}  # the Lease as the cluster has it, with all its fields
    unread = ""  # why it could not be read

    async def prepare(self) -> None:
        if self.request.method == "POST":
            return
        try:
            self.whole = await self.cluster.writer.raw_get(self.key)
        except NotFound:
            raise Http404(f"There is no Lease {self.key} in {self.cluster.name}.") from None
        except ApiError as error:
            self.unread = f"The cluster did not send the Lease: {error}"

    def initial(self) -> dict[str, Any]:
        text = as_text(self.whole) if self.whole else ""
        term = {"seen_term": edit.term_of(lease_of(self.whole))} if self.whole else {}
        return {"text": text, "shown": text} | term

    async def first(self) -> HttpResponse:
        return await self.draw(self.made(), error=self.unread)

    def doubt(self, form: YamlForm, verdict: DryRun) -> str:
        form.notice_dropped(verdict)
        return (
            "" if form.agreed else "The cluster would leave out what is marked. Correct or agree."
        )

    def context(self, form: YamlForm, verdict: DryRun | None, *, quiet: bool) -> dict[str, Any]:
        """What is said at a line is not said again below."""
        context = super().context(form, verdict, quiet=quiet)
        if verdict is not None:
            context["verdict"] = _rest(context["verdict"], form.dropped)
        return context

    def what_happens(self, form: YamlForm) -> WhatHappens | None:
        if not form.is_bound or not form.is_valid():
            return None
        return of_edit(self.tracked, form.meant(), self.now)


def _rest(verdict: VerdictView, said: Sequence[YamlProblem]) -> VerdictView:
    """The verdict without the fields that are left out at their lines."""
    beginnings = tuple(f"{one.path}{end}" for one in said for end in ":.")
    warnings = {f'unknown field "{one.path}"' for one in said}
    return msgspec.structs.replace(
        verdict,
        dropped=tuple(one for one in verdict.dropped if not one.startswith(beginnings)),
        warnings=tuple(one for one in verdict.warnings if one not in warnings),
    )


lease_edit, lease_yaml = form_view(EditPage), form_view(YamlPage)
lease_release, lease_hand_over = form_view(ReleasePage), form_view(HandOverPage)
lease_delete = form_view(DeletePage)

CHOICES = {",".join(verbs): verbs for verbs in (ON_LEASE, ON_LIST)}


@require_safe
async def write_rights(request: HttpRequest, cluster: str) -> HttpResponseBase:
    """`namespace` may be empty: all of them. `verbs` are those of a page's buttons."""
    refusal = await sync_to_async(check_editor)(request)
    if refusal is not None:
        return refusal
    watched = request.cluster = find_cluster(cluster)  # type: ignore[attr-defined]
    try:
        namespace = text(request.GET, "namespace")
        verbs = CHOICES[one_of(request.GET, "verbs", tuple(CHOICES))]
    except BadFilter as error:
        return HttpResponse(str(error), status=400, content_type="text/plain; charset=utf-8")
    answers = await may_write_each(watched, await request.auser(), namespace, verbs)
    context = {"rights": rights_of(answers)}
    return await sync_to_async(render)(request, "forms/_write_rights.html", context)
