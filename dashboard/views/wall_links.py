"""Wall links: see them, make one, revoke one."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from dashboard import runtime
from dashboard.access.guards import check_view
from dashboard.access.roles import WALL_LINKS
from dashboard.access.wall_links import url_of
from dashboard.forms.wall_link import WallLinkForm
from leases.models import WallLink


def _check(request: HttpRequest) -> HttpResponseBase | None:
    refusal = check_view(request)
    if refusal is None and not request.user.has_perm(WALL_LINKS):
        raise PermissionDenied(f"{request.user} may not manage wall links. Ask an admin.")
    return refusal


@require_http_methods(["GET", "HEAD", "POST"])
def wall_links(request: HttpRequest) -> HttpResponseBase:
    """The links; POST makes one more."""
    refusal = _check(request)
    if refusal is not None:
        return refusal
    form = WallLinkForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        link = form.save(now=timezone.now())
        messages.success(request, f"The wall link {link.name!r} is made.")
        return redirect("wall_links")
    context = {"links": _presented(request), "form": form}
    return render(request, "wall_links/index.html", context, status=422 if form.errors else 200)


@require_POST
def revoke_wall_link(request: HttpRequest, number: int) -> HttpResponseBase:
    """Make a link open nothing from now on."""
    refusal = _check(request)
    if refusal is not None:
        return refusal
    link = get_object_or_404(WallLink, pk=number)
    WallLink.objects.filter(pk=link.pk, revoked_at=None).update(revoked_at=timezone.now())
    messages.success(request, f"The wall link {link.name!r} opens nothing any more.")
    return redirect("wall_links")


def _presented(request: HttpRequest) -> list[dict[str, Any]]:
    now = timezone.now()
    first = next(iter(runtime.get().clusters))
    return [
        {
            "pk": link.pk,
            "name": link.name,
            "created_at": link.created_at,
            "expires_at": link.expires_at,
            "revoked_at": link.revoked_at,
            "open": link.revoked_at is None and (link.expires_at is None or now < link.expires_at),
            "url": request.build_absolute_uri(url_of(link, cluster=first)),
        }
        for link in WallLink.objects.order_by("-created_at")
    ]
