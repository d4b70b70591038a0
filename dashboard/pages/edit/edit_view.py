"""Edit the fields of one Lease."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponseBase, QueryDict
from django.views.decorators.http import require_http_methods

from dashboard.forms.collision import Collision
from dashboard.forms.edit_form import EditForm, initial_of
from dashboard.pages.edit.form_page import FormPage, answer
from dashboard.pages.edit.what_happens import WhatHappens, of_edit
from leases.actions.guarded_write import DryRun, Guard, Moved, Refused
from leases.domain.edit.lease_write import FieldEdit
from leases.domain.edit.term import term_of
from leases.domain.lease import Lease, ObjectName
from leases.wire.watch_decoding import lease_of


@require_http_methods(["GET", "HEAD", "POST"])
async def lease_edit(
    request: HttpRequest, cluster: str, namespace: str, name: str
) -> HttpResponseBase:
    """GET draws the form; POST asks for a dry run; POST with `confirm` writes."""
    return await answer(EditPage, request, cluster, ObjectName(namespace, name))


class EditPage(FormPage[EditForm]):
    template = "forms/edit.html"

    def unbound(self) -> EditForm:
        """The present values; `?holder=` fills in another holder."""
        initial = initial_of(self.tracked.lease)
        if "holder" in self.request.GET:
            initial["holder_identity"] = self.request.GET["holder"]
        return EditForm(initial=initial)

    def bound(self, data: QueryDict, *, saving: bool) -> EditForm:
        form = EditForm(data, saving=saving)
        form.current = self.tracked.lease
        return form

    def wanted(self, form: EditForm) -> FieldEdit:
        return form.wanted()

    def guard(self, form: EditForm) -> Guard:
        def guard(_: dict[str, Any], current: Lease) -> None:
            if term_of(current) != self.seen_term(form) or form.collisions(current, moved=False):
                raise Refused

        return guard

    def seen_term(self, form: EditForm) -> str:
        seen = form.was_shown
        return seen.term if seen else ""

    def collisions(self, form: EditForm, moved: Moved) -> tuple[Collision, ...]:
        another = term_of(moved.lease) != self.seen_term(form)
        return form.collisions(moved.lease, moved=another)

    def rebased(self, form: EditForm, current: dict[str, Any]) -> EditForm:
        return form.rebased(lease_of(current))

    def previewed(self, form: EditForm, verdict: DryRun) -> EditForm:
        return self.rebased(form, verdict.before)

    def what_happens(self, form: EditForm) -> WhatHappens | None:
        if not form.is_bound or not form.is_valid():
            return None
        return of_edit(self.tracked, form.wanted(), self.now)
