"""The actions on one Lease: edit, release, hand over, delete, edit as YAML; and what is allowed."""

from datetime import timedelta
from typing import Any

from asgiref.sync import sync_to_async
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard.access.guards import check_editor, find_cluster
from dashboard.forms import edit_form
from dashboard.forms.form_page import LeaseActionPage, form_view
from dashboard.forms.what_happens import WhatHappens, of_delete, of_edit, of_hand_over, of_release
from dashboard.forms.yaml_form import YamlForm, as_text
from dashboard.lists.url_parameters import BadFilter, one_of, text
from dashboard.parts.formatting import when
from dashboard.parts.holdings import holdings_of, host_of
from dashboard.parts.names import MAX_IDENTITY, holder_view
from dashboard.parts.write_access import ON_LEASE, ON_LIST, may_write_each, rights_of
from leases.actions.write_lease import DryRun
from leases.domain import edit
from leases.domain.election import CandidateState, standing
from leases.domain.phase import Phase
from leases.history.timeline_lanes import lanes
from leases.kube.lease_client import candidates_of
from leases.tracking.tracked_lease import Tracked
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
WITHIN = 3.0  # seconds for the list of candidates


class HandOverPage(LeaseActionPage[edit_form.HandOverForm]):
    template = "forms/hand_over.html"
    form_class = edit_form.HandOverForm
    choices: tuple[edit_form.NextHolder, ...] = ()

    async def prepare(self) -> None:
        candidates = await self._candidates() if edit.is_coordinated(self.tracked.lease) else ()
        before = await sync_to_async(self._before)()
        named = {one.identity for one in candidates}
        others = sorted(
            (one for one in before if one.identity not in named), key=lambda one: not one.alive
        )
        self.choices = (*candidates, *others)[:MAX_CHOICES]

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

    async def _candidates(self) -> tuple[edit_form.NextHolder, ...]:
        """The LeaseCandidates, ready ones first; none if the cluster does not tell."""
        try:
            found = await candidates_of(self.cluster.writer, self.key, within=WITHIN) or ()
        except ApiError:
            return ()
        states = [(one.name, standing(one, self.now)) for one in found]
        states.sort(key=lambda state: state[1] is not CandidateState.READY)
        return tuple(
            edit_form.NextHolder(identity=name, view=view, note=f"candidate, {state.value}")
            for name, state in states
            if name != self.tracked.holder and (view := holder_view(name)) is not None
        )

    def _renewed_by(self, identity: str) -> Tracked | None:
        """A Lease that this process is seen to renew now."""
        held = holdings_of(self.cluster.store).held_on(host_of(identity))
        return next(
            (one for one in held if one.holder == identity and one.phase is Phase.HELD), None
        )

    def _before(self) -> tuple[edit_form.NextHolder, ...]:
        """Who held it before, the latest first."""
        since = self.now - LOOKS_BACK
        found = lanes(self.cluster.name, [self.key], since=since, until=self.now)
        choices: dict[str, edit_form.NextHolder] = {}
        for term in reversed(found[0].life.terms if found else ()):
            view = holder_view(term.holder)
            typed = term.holder.isprintable() and len(term.holder) <= MAX_IDENTITY
            if view is None or term.until is None or not typed:
                continue
            if term.holder != self.tracked.holder and term.holder not in choices:
                note = f"held it until {when(term.until, self.now)}"
                renews = self._renewed_by(term.holder)
                if renews is not None:
                    note = f"renews {renews.key} now; {note}"
                choices[term.holder] = edit_form.NextHolder(
                    identity=term.holder, view=view, note=note, alive=renews is not None
                )
        return tuple(choices.values())


class ReleasePage(LeaseActionPage[edit_form.ReleaseForm]):
    template = "forms/release.html"
    form_class = edit_form.ReleaseForm
    asks_when_opened = True

    def what_happens(self, form: edit_form.ReleaseForm) -> WhatHappens | None:
        return of_release(self.tracked, self.now)


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

    def what_happens(self, form: YamlForm) -> WhatHappens | None:
        if not form.is_bound or not form.is_valid():
            return None
        return of_edit(self.tracked, form.meant(), self.now)


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
