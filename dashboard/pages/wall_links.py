"""Links that open the wall without a login: list, make and revoke them."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from dashboard import clock
from dashboard.access import links
from dashboard.access.guards import right_required
from dashboard.access.roles import WALL_LINKS
from dashboard.access.security_log import SecurityEvent, record_by
from dashboard.board import running_board
from dashboard.forms.admin_form import PlainForm, list_and_make
from dashboard.forms.fields import TextLine, WholeNumber
from leases.models import WallLink


class WallLinkForm(PlainForm):
    """The name of the screen, the clusters that its link opens, and for how many days."""

    name = forms.CharField(
        label="Name",
        max_length=100,
        widget=TextLine(),
        help_text="Where the screen hangs.",
        error_messages={"required": "Write a name, so that you know the link again."},
    )
    clusters = forms.MultipleChoiceField(
        label="Clusters",
        widget=forms.CheckboxSelectMultiple,
        help_text="The link opens only the walls of these clusters.",
        error_messages={
            "required": "Choose a cluster: a wall link opens those that it names alone.",
            "invalid_choice": "%(value)s is no cluster here. Choose one of the list.",
        },
    )
    days = forms.IntegerField(
        label="Ends after",
        required=False,
        min_value=1,
        max_value=3650,
        widget=WholeNumber(unit="days"),
        help_text="Empty: until it is revoked.",
    )

    def __init__(self, *args: Any, clusters: Iterable[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        known = list(clusters)
        self.fields["clusters"].choices = [(name, name) for name in known]  # type: ignore[attr-defined]
        if len(known) == 1:
            self.initial["clusters"] = known

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if WallLink.objects.filter(name=name, revoked_at=None).exists():
            raise forms.ValidationError("There is a link of this name already; choose another.")
        return name

    def save(self, *, created_by: str, now: datetime) -> tuple[WallLink, str]:
        """Make the link of a valid form. Returns it with its token."""
        days = self.cleaned_data["days"]
        return links.create(
            name=self.cleaned_data["name"],
            clusters=self.cleaned_data["clusters"],
            created_by=created_by,
            now=now,
            expires_at=now + timedelta(days=days) if days else None,
        )


def _record(request: HttpRequest, event: SecurityEvent, link: WallLink) -> None:
    record_by(request, event, f"wall link {link.name} of {', '.join(link.clusters)}")


manager_required = right_required(WALL_LINKS, "manage wall links")


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@manager_required
def wall_links(request: HttpRequest) -> HttpResponseBase:
    """List the links. POST makes one and shows its address only once."""

    def make(form: WallLinkForm) -> dict[str, Any]:
        link, token = form.save(created_by=request.user.get_username(), now=clock.now())
        _record(request, SecurityEvent.LINK_CREATED, link)
        urls = {
            cluster: request.build_absolute_uri(links.path_of(token, cluster=cluster))
            for cluster in link.clusters
        }
        return {"made": link, "made_urls": urls}

    form = partial(WallLinkForm, clusters=running_board().clusters)
    return list_and_make(request, "wall_links/index.html", form, make, _presented)


@require_http_methods(["GET", "HEAD", "POST"])
@manager_required
def revoke_wall_link(request: HttpRequest, number: int) -> HttpResponseBase:
    """Ask first; POST revokes the link."""
    link = get_object_or_404(WallLink, pk=number)
    if request.method != "POST":
        return render(request, "wall_links/revoke.html", {"link": link})
    links.revoke(link.pk, now=clock.now())
    _record(request, SecurityEvent.LINK_REVOKED, link)
    running_board().rights.look_now()
    messages.success(request, f"The wall link {link.name!r} opens nothing any more.")
    return redirect("wall_links")


def _presented() -> dict[str, Any]:
    now, clusters = clock.now(), running_board().clusters
    shown = [
        {
            "link": link,
            "unwatched": not any(cluster in clusters for cluster in link.clusters),
            "open": link.revoked_at is None and (link.expires_at is None or now < link.expires_at),
        }
        for link in WallLink.objects.order_by("-created_at", "-pk")
    ]
    return {"links": shown}
