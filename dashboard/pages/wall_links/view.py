"""List, make and revoke wall links."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from dashboard import clock
from dashboard.access.guards import check_view
from dashboard.access.roles import WALL_LINKS
from dashboard.access.security_log import SecurityEvent, record
from dashboard.access.sign_in.client_address import full_address
from dashboard.access.wall import links as links
from dashboard.board import running_board
from dashboard.pages.wall_links.form import WallLinkForm
from leases.models import WallLink


def _check(request: HttpRequest) -> HttpResponseBase | None:
    refusal = check_view(request)
    if refusal is None and not request.user.has_perm(WALL_LINKS):
        raise PermissionDenied(f"{request.user} may not manage wall links. Ask an admin.")
    return refusal


def _record(request: HttpRequest, event: SecurityEvent, link: WallLink) -> None:
    record(
        event,
        who=request.user.get_username(),
        address=full_address(request.META.get("REMOTE_ADDR")),
        about=f"wall link {link.name} of {', '.join(link.clusters)}",
    )


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def wall_links(request: HttpRequest) -> HttpResponseBase:
    """List the links. POST makes one and shows its address only once."""
    refusal = _check(request)
    if refusal is not None:
        return refusal
    data = request.POST if request.method == "POST" else None
    form = WallLinkForm(data, clusters=running_board().clusters)
    made: dict[str, Any] = {}
    if form.is_valid():
        link, token = form.save(created_by=request.user.get_username(), now=clock.now())
        _record(request, SecurityEvent.LINK_CREATED, link)
        urls = {
            cluster: request.build_absolute_uri(links.path_of(token, cluster=cluster))
            for cluster in link.clusters
        }
        made = {"made": link, "made_urls": urls}
        form = WallLinkForm(clusters=running_board().clusters)
    context = {"links": _presented(), "form": form, **made}
    return render(request, "wall_links/index.html", context, status=422 if form.errors else 200)


@require_http_methods(["GET", "HEAD", "POST"])
def revoke_wall_link(request: HttpRequest, number: int) -> HttpResponseBase:
    """Ask first; POST revokes the link."""
    refusal = _check(request)
    if refusal is not None:
        return refusal
    link = get_object_or_404(WallLink, pk=number)
    if request.method != "POST":
        return render(request, "wall_links/revoke.html", {"link": link})
    links.revoke(link.pk, now=clock.now())
    _record(request, SecurityEvent.LINK_REVOKED, link)
    running_board().rights.look_now()
    messages.success(request, f"The wall link {link.name!r} opens nothing any more.")
    return redirect("wall_links")


def _presented() -> list[dict[str, Any]]:
    now, clusters = clock.now(), running_board().clusters
    return [
        {
            "link": link,
            "unwatched": not any(cluster in clusters for cluster in link.clusters),
            "open": link.revoked_at is None and (link.expires_at is None or now < link.expires_at),
        }
        for link in WallLink.objects.order_by("-created_at", "-pk")
    ]
