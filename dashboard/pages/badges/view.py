"""List, make and revoke badges."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from dashboard import clock
from dashboard.access.guards import check_view
from dashboard.access.roles import BADGES
from dashboard.access.security_log import SecurityEvent, record
from dashboard.access.tokens import digest_of, new_token
from dashboard.board import running_board
from dashboard.forms.lease_field import LeaseField
from dashboard.forms.plain_form import PlainForm
from dashboard.forms.widgets import Dropdown, TextLine
from leases.models import Badge

MAX_BADGES = 1000  # that open
MAX_NUMBER = 2**63 - 1  # of a row, in the database


class BadgeForm(PlainForm):
    """What a badge shows: a cluster, a namespace, or one Lease."""

    name = forms.CharField(
        label="Name",
        max_length=100,
        widget=TextLine(),
        help_text="Where it is shown, so that it can be revoked without the others.",
        error_messages={"required": "Write a name, so that you know the badge again."},
    )
    cluster = forms.ChoiceField(label="Cluster", widget=Dropdown())
    lease = LeaseField(help_text="Empty: the whole cluster.")

    def __init__(self, *args: Any, clusters: Iterable[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["cluster"].choices = [(name, name) for name in clusters]  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        if Badge.objects.filter(revoked_at=None).count() >= MAX_BADGES:
            self.add_error("name", f"There are {MAX_BADGES:,} badges. Revoke some first.")
        return super().clean() or {}


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def badges(request: HttpRequest) -> HttpResponseBase:
    """List the badges. POST makes one and shows its address only once."""
    refusal = _check(request)
    if refusal is not None:
        return refusal
    data = request.POST if request.method == "POST" else None
    clusters = running_board().clusters
    form = BadgeForm(data, clusters=clusters)
    made: dict[str, Any] = {}
    if form.is_valid():
        made = _make(request, form)
        form = BadgeForm(clusters=clusters)
    context = {"badges": Badge.objects.order_by("-created_at", "-pk"), "form": form, **made}
    return render(request, "badges/index.html", context, status=422 if form.errors else 200)


@require_POST
def revoke_badge(request: HttpRequest, number: int) -> HttpResponseBase:
    refusal = _check(request)
    if refusal is not None:
        return refusal
    badge = Badge.objects.filter(pk=number).first() if number <= MAX_NUMBER else None
    if badge is not None and badge.revoked_at is None:
        badge.revoked_at = clock.now()
        badge.save(update_fields=["revoked_at"])
        _note(request, SecurityEvent.LINK_REVOKED, badge)
        messages.success(request, f"The badge {badge.name!r} shows nothing any more.")
    return redirect("badges")


def _check(request: HttpRequest) -> HttpResponseBase | None:
    refusal = check_view(request)
    if refusal is None and not request.user.has_perm(BADGES):
        raise PermissionDenied(f"{request.user} may not manage badges. Ask an admin.")
    return refusal


def _make(request: HttpRequest, form: BadgeForm) -> dict[str, Any]:
    token = new_token()
    namespace, lease = form.cleaned_data["lease"]
    badge = Badge.objects.create(
        name=form.cleaned_data["name"],
        digest=digest_of(token),
        cluster=form.cleaned_data["cluster"],
        namespace=namespace,
        lease=lease,
        created_by=request.user.get_username(),
        created_at=clock.now(),
    )
    _note(request, SecurityEvent.LINK_CREATED, badge)
    urls = {
        sort: request.build_absolute_uri(reverse(f"badge_{sort}", args=[token]))
        for sort in ("svg", "json")
    }
    return {"made": badge, "made_urls": urls}


def _note(request: HttpRequest, event: SecurityEvent, badge: Badge) -> None:
    address = request.META.get("REMOTE_ADDR") or ""
    record(event, who=request.user.get_username(), address=address, about=f"badge {badge.name}")
