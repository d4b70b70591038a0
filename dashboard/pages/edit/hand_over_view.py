"""Hand one Lease over to another holder."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponseBase, QueryDict
from django.views.decorators.http import require_http_methods

from dashboard.forms.hand_over_form import ANOTHER, HandOverForm, NextHolder
from dashboard.pages.edit.form_page import FormPage, answer
from dashboard.pages.edit.what_happens import WhatHappens, of_hand_over
from dashboard.parts.formatting import when
from dashboard.parts.holder_name import MAX_IDENTITY, holder_view
from leases.actions.guarded_write import Guard, same_term
from leases.domain.edit.lease_write import HandOver, is_coordinated
from leases.domain.election.candidates import CandidateState, standing
from leases.domain.lease import ObjectName
from leases.history.read.timeline_lanes import lanes
from leases.kube.candidates import candidates_of
from leases.wire.status import ApiError
from leases.wire.watch_decoding import lease_of

LOOKS_BACK = timedelta(days=30)
MAX_CHOICES = 6
WITHIN = 3.0  # seconds for the list of candidates


@require_http_methods(["GET", "HEAD", "POST"])
async def lease_hand_over(
    request: HttpRequest, cluster: str, namespace: str, name: str
) -> HttpResponseBase:
    """GET draws the form; POST asks for a dry run; POST with `confirm` writes."""
    return await answer(HandOverPage, request, cluster, ObjectName(namespace, name))


class HandOverPage(FormPage[HandOverForm]):
    template = "forms/hand_over.html"
    choices: tuple[NextHolder, ...] = ()

    async def prepare(self) -> None:
        candidates = await self._candidates() if is_coordinated(self.tracked.lease) else ()
        before = await sync_to_async(self._before)()
        named = {one.identity for one in candidates}
        others = (one for one in before if one.identity not in named)
        self.choices = (*candidates, *others)[:MAX_CHOICES]

    @property
    def _people(self) -> dict[str, Any]:
        return {"choices": self.choices, "holder": self.tracked.holder}

    def unbound(self) -> HandOverForm:
        """`?holder=` chooses a holder."""
        initial = HandOverForm.initial_of(self.tracked.lease)
        if wanted := self.request.GET.get("holder", ""):
            known = any(one.identity == wanted for one in self.choices)
            initial |= {"to": wanted} if known else {"to": ANOTHER, "other": wanted}
        return HandOverForm(initial=initial, **self._people)

    def bound(self, data: QueryDict, *, saving: bool) -> HandOverForm:
        return HandOverForm(data, saving=saving, **self._people)

    def wanted(self, form: HandOverForm) -> HandOver:
        return form.wanted()

    def guard(self, form: HandOverForm) -> Guard:
        return same_term(form.cleaned_data["seen_term"])

    def rebased(self, form: HandOverForm, current: dict[str, Any]) -> HandOverForm:
        data = self.request.POST.copy()
        data["seen_term"] = HandOverForm.initial_of(lease_of(current))["seen_term"]
        return HandOverForm(data, **self._people)

    def what_happens(self, form: HandOverForm) -> WhatHappens | None:
        to = form.chosen
        if form.is_bound and form.is_valid():
            to = form.cleaned_data["next"]
        return of_hand_over(self.tracked, to, self.now) if to else None

    async def _candidates(self) -> tuple[NextHolder, ...]:
        """The LeaseCandidates, ready ones first; none if the cluster does not tell."""
        try:
            found = await candidates_of(self.cluster.writer, self.key, within=WITHIN) or ()
        except ApiError:
            return ()
        states = [(one.name, standing(one, self.now)) for one in found]
        states.sort(key=lambda state: state[1] is not CandidateState.READY)
        return tuple(
            NextHolder(identity=name, view=view, note=f"candidate, {state.value}")
            for name, state in states
            if name != self.tracked.holder and (view := holder_view(name)) is not None
        )

    def _before(self) -> tuple[NextHolder, ...]:
        """Who held it before, the latest first."""
        since = self.now - LOOKS_BACK
        found = lanes(self.cluster.name, [self.key], since=since, until=self.now)
        choices: dict[str, NextHolder] = {}
        for term in reversed(found[0].life.terms if found else ()):
            view = holder_view(term.holder)
            typed = term.holder.isprintable() and len(term.holder) <= MAX_IDENTITY
            if view is None or term.until is None or not typed:
                continue
            if term.holder != self.tracked.holder and term.holder not in choices:
                note = f"held it until {when(term.until, self.now)}"
                choices[term.holder] = NextHolder(identity=term.holder, view=view, note=note)
        return tuple(choices.values())
