"""Say that a Lease may be vacant: the form and what it does."""

from __future__ import annotations

from typing import cast

from asgiref.sync import sync_to_async
from django import forms
from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from dashboard import clock
from dashboard.access.guards import check_view
from dashboard.board import running_board
from dashboard.pages.lease.kind_view import overridable
from leases.actions.mark_may_be_vacant import mark_may_be_vacant
from leases.domain.lease import ObjectName

MAY, MUST_NOT = "true", "false"


class LeaseVacancyForm(forms.Form):
    """Whether it is in order that nobody holds the Lease."""

    may_be_vacant = forms.TypedChoiceField(
        label="Vacancy",
        widget=forms.Select(attrs={"class": "select"}),
        choices=[(MUST_NOT, "must have a holder"), (MAY, "may be vacant")],
        coerce=lambda value: value == MAY,
    )


@require_POST
async def lease_vacancy(
    request: HttpRequest, cluster: str, namespace: str, name: str
) -> HttpResponseBase:
    """POST `may_be_vacant`, true or false."""
    key = ObjectName(namespace, name)
    answer = await sync_to_async(_store)(request, cluster, key)
    await running_board().overrides.refresh()
    return answer


def _store(request: HttpRequest, cluster: str, key: ObjectName) -> HttpResponseBase:
    refusal = check_view(request)
    if refusal is not None:
        return refusal
    overridable(request, cluster, key)
    form = LeaseVacancyForm(request.POST)
    if form.is_valid():
        may: bool = form.cleaned_data["may_be_vacant"]
        mark_may_be_vacant(
            user=cast("User", request.user),
            cluster=cluster,
            key=key,
            may_be_vacant=may,
            at=clock.now(),
        )
        said = "may be vacant from now on" if may else "must have a holder again"
        messages.success(request, f"{key} {said}.")
    else:
        messages.error(request, form.errors["may_be_vacant"].as_text())
    return redirect("lease", cluster, key.namespace, key.name)
