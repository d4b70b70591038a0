"""What an admin says of a Lease: its kind, and that it may be vacant."""

from collections.abc import Callable, Iterable
from typing import Any, cast

from asgiref.sync import sync_to_async
from django import forms
from django.contrib import messages
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from dashboard import clock
from dashboard.access.guards import check_view, find_cluster
from dashboard.access.roles import OVERRIDE_KIND
from dashboard.board import running_board
from leases.actions.overrides import mark_may_be_vacant, override_kind
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.tracking.tracked_lease import Tracked

BY_THE_RULES = ""


MAY, MUST_NOT = "true", "false"


def _choice(label: str, choices: Iterable[tuple[str, str]], *, needed: bool) -> forms.ChoiceField:
    select = forms.Select(attrs={"class": "select"})
    choices = list(choices)
    wrong = f"Nothing was changed. {label} is one of: {', '.join(word for _, word in choices)}."
    return forms.ChoiceField(
        label=label, required=needed, widget=select, choices=choices,
        error_messages={"required": wrong, "invalid_choice": wrong},
    )  # fmt: skip


class LeaseKindForm(forms.Form):
    """One of the kinds, or the one that the rules decide."""

    kind = _choice(
        "Kind",
        ((BY_THE_RULES, "as the rules decide"), *((one.value, one.value) for one in Kind)),
        needed=False,
    )


class LeaseVacancyForm(forms.Form):
    """Whether it is in order that nobody holds the Lease."""

    may_be_vacant = _choice(
        "Vacancy", ((MUST_NOT, "must have a holder"), (MAY, "may be vacant")), needed=True
    )


def overridable(request: HttpRequest, cluster: str, key: ObjectName) -> Tracked:
    """The Lease that the user may override. Raises PermissionDenied and Http404."""
    if not request.user.has_perm(OVERRIDE_KIND):
        raise PermissionDenied(f"{request.user} may not override Leases. Ask an admin.")
    tracked = find_cluster(cluster).store.get(key)
    if tracked is None:
        raise Http404(f"There is no Lease {key} in {cluster}. It may have been deleted.")
    return tracked


async def _override(
    request: HttpRequest,
    cluster: str,
    key: ObjectName,
    form: forms.Form,
    store: Callable[[Tracked, dict[str, Any], User], str],
) -> HttpResponseBase:
    """Let `store` keep the valid values; it returns what is so from now on."""

    def answer() -> HttpResponseBase:
        refusal = check_view(request)
        if refusal is not None:
            return refusal
        tracked = overridable(request, cluster, key)
        if form.is_valid():
            said = store(tracked, form.cleaned_data, cast("User", request.user))
            messages.success(request, f"{key} {said}.")
        else:
            messages.error(request, str(next(iter(form.errors.values()))[0]))
        return redirect("lease", cluster, key.namespace, key.name)

    answered = await sync_to_async(answer)()
    await running_board().overrides.refresh()
    return answered


@require_POST
async def lease_kind(
    request: HttpRequest, cluster: str, namespace: str, name: str
) -> HttpResponseBase:
    """POST `kind`; an empty value removes the override."""
    key = ObjectName(namespace, name)

    def store(tracked: Tracked, given: dict[str, Any], user: User) -> str:
        kind = Kind(given["kind"]) if given["kind"] else None
        override_kind(
            user=user, cluster=cluster, key=key, kind=kind, before=tracked.kind, at=clock.now()
        )
        return f"is {kind.value} from now on" if kind else "is what the rules decide"

    return await _override(request, cluster, key, LeaseKindForm(request.POST), store)


@require_POST
async def lease_vacancy(
    request: HttpRequest, cluster: str, namespace: str, name: str
) -> HttpResponseBase:
    """POST `may_be_vacant`, true or false."""
    key = ObjectName(namespace, name)

    def store(_tracked: Tracked, given: dict[str, Any], user: User) -> str:
        may = given["may_be_vacant"] == MAY
        mark_may_be_vacant(user=user, cluster=cluster, key=key, may_be_vacant=may, at=clock.now())
        return "may be vacant from now on" if may else "must have a holder again"

    return await _override(request, cluster, key, LeaseVacancyForm(request.POST), store)
