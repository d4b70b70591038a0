"""Release one Lease as client-go does."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponseBase, QueryDict
from django.views.decorators.http import require_http_methods

from dashboard.forms.release_form import ReleaseForm
from dashboard.pages.edit.form_page import FormPage, answer
from dashboard.pages.edit.what_happens import WhatHappens, of_release
from leases.actions.guarded_write import Guard, same_term
from leases.domain.edit.lease_write import Release
from leases.domain.lease import ObjectName
from leases.wire.watch_decoding import lease_of


@require_http_methods(["GET", "HEAD", "POST"])
async def lease_release(
    request: HttpRequest, cluster: str, namespace: str, name: str
) -> HttpResponseBase:
    """GET shows what a release would do; POST with `confirm` writes it."""
    return await answer(ReleasePage, request, cluster, ObjectName(namespace, name))


class ReleasePage(FormPage[ReleaseForm]):
    template = "forms/release.html"
    previews_at_once = True

    def unbound(self) -> ReleaseForm:
        return ReleaseForm(initial=ReleaseForm.initial_of(self.tracked.lease))

    def bound(self, data: QueryDict, *, saving: bool) -> ReleaseForm:
        return ReleaseForm(data, saving=saving)

    def wanted(self, form: ReleaseForm) -> Release:
        return Release()

    def guard(self, form: ReleaseForm) -> Guard:
        return same_term(str(form["seen_term"].value()))

    def rebased(self, form: ReleaseForm, current: dict[str, Any]) -> ReleaseForm:
        data = self.request.POST.copy()
        data["seen_term"] = ReleaseForm.initial_of(lease_of(current))["seen_term"]
        return ReleaseForm(data)

    def what_happens(self, form: ReleaseForm) -> WhatHappens | None:
        return of_release(self.tracked, self.now)
