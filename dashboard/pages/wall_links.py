"""Links that open the wall without a login: list, make and revoke them."""

from collections.abc import Iterable
from typing import Any

from django import forms
from django.contrib import messages
from django.db.models import Count, Q
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from dashboard import clock
from dashboard.access import links, screens
from dashboard.access.guards import right_required
from dashboard.access.roles import WALL_LINKS
from dashboard.access.security_log import SecurityEvent, record_by
from dashboard.board import running_board
from dashboard.forms.admin_form import Names, PlainForm, Some
from dashboard.forms.fields import EndField, ZoneField
from dashboard.forms.make_and_revoke import MadeByPeople, name_field, row_of
from dashboard.parts.lease_controls import says
from dashboard.parts.lease_filter import LeaseFilter
from leases.domain.kind import Kind
from leases.models import WallLink, WallScreen

CHOOSE = "Choose a cluster: a wall link opens those that it names alone."
WHOLE = "A wall of all clusters counts whole clusters: leave namespaces and kinds empty."


class WallLinkForm(PlainForm):
    """The name of the screen, the clusters that its link opens, and when it ends."""

    name = name_field("link", "Where the screen hangs.")
    clusters = forms.MultipleChoiceField(
        label="Clusters",
        widget=forms.CheckboxSelectMultiple,
        required=False,
        help_text="The link opens only the walls of these clusters.",
        error_messages={
            "invalid_choice": "%(value)s is no cluster here. Choose one of the list.",
        },
    )
    fleet = forms.BooleanField(
        label="All of them on one wall",
        required=False,
        help_text="A strip for each cluster, the worst first, instead of a wall of each in turn. "
        "Without a cluster chosen: all, also those that come later.",
    )
    namespace = Names(
        label="Namespaces",
        most=16,
        help_text="Screens that a code opens show these alone. Write commas between them; "
        "leave it empty for all.",
    )
    kinds = Some([(one.value, one.value) for one in Kind], label="Kinds of Leases")
    zone = ZoneField(help_text="Its screens show times in this zone.")
    days = EndField(
        label="Ends",
        required=False,
        most_days=3650,
        help_text="After days, a length such as 12 h, or at a time. Empty: until it is revoked.",
    )

    def __init__(self, *args: Any, clusters: Iterable[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        known = list(clusters)
        self.fields["clusters"].choices = [(name, name) for name in known]  # type: ignore[attr-defined]
        if len(known) == 1:
            self.initial["clusters"] = known

    def clean_namespace(self) -> str:
        return ",".join(self.cleaned_data["namespace"])

    def clean(self) -> dict[str, Any]:
        found = super().clean() or self.cleaned_data
        if not found.get("fleet"):
            if "clusters" not in self.errors and not found.get("clusters"):
                self.add_error("clusters", CHOOSE)
        elif found.get("namespace") or found.get("kinds"):
            self.add_error("fleet", WHOLE)
        return found

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if WallLink.objects.filter(name=name, revoked_at=None).exists():
            raise forms.ValidationError("There is a link of this name already; choose another.")
        return name


class WallLinks(MadeByPeople[WallLink, WallLinkForm]):
    """Links that open the wall of some clusters without a login."""

    model, route, called = WallLink, "wall_links", "link"
    templates = ("wall_links/index.html", "wall_links/revoke.html")
    guard = staticmethod(right_required(WALL_LINKS, "manage wall links"))
    made, revoked = SecurityEvent.LINK_CREATED, SecurityEvent.LINK_REVOKED

    def form(self, data: Any) -> WallLinkForm:
        return WallLinkForm(data, clusters=running_board().clusters)

    def make(self, form: WallLinkForm) -> tuple[WallLink, dict[str, Any]]:
        link, token = links.create(
            name=form.cleaned_data["name"],
            clusters=form.cleaned_data["clusters"],
            created_by=self.request.user.get_username(),
            now=clock.now(),
            expires_at=form.cleaned_data["days"],
            namespace=form.cleaned_data["namespace"],
            kinds=form.cleaned_data["kinds"],
            zone=form.cleaned_data["zone"],
            fleet=form.cleaned_data["fleet"],
        )
        urls = {
            called(cluster): self.request.build_absolute_uri(links.path_of(token, cluster=cluster))
            for cluster in link.walls
        }
        return link, {"made": link, "made_urls": urls}

    def about(self, row: WallLink) -> str:
        return f"wall link {row.name} of {', '.join(row.clusters) or 'all clusters'}"

    def end(self, row: WallLink) -> tuple[bool, str]:
        links.revoke(row.pk, now=clock.now())
        running_board().rights.look_now()
        return True, f"The wall link {row.name!r} opens nothing any more."

    def listed(self) -> dict[str, Any]:
        now, clusters = clock.now(), running_board().clusters
        typed = Count("screens", filter=Q(screens__redeemed_at__isnull=False))
        shown = [
            {
                "link": link,
                "unwatched": bool(link.clusters) and clusters.keys().isdisjoint(link.clusters),
                "open": link.revoked_at is None
                and (link.expires_at is None or now < link.expires_at),
                "screens": link.typed,
                "shows": says(LeaseFilter(namespace=link.namespace, kinds=tuple(link.kinds))),
            }
            for link in WallLink.objects.order_by("-created_at", "-pk").annotate(typed=typed)
        ]
        return {"links": shown}

    def make_code(self, number: int) -> HttpResponse:
        """Show the list with a code for one more screen, which it cannot show again."""
        link, now = WallLink.objects.filter(pk=number).first(), clock.now()
        if link is None:
            raise Http404("There is no such wall link.")
        if not screens.is_open(link, now):
            return self.back(f"The wall link {link.name!r} has ended: it opens no screen.")
        code = screens.make_code(link, now)
        self._record(SecurityEvent.SCREEN_CODE_CREATED, link)
        context = {
            **self.listed(),
            "form": self.form(None),
            "code_of": link,
            "code": f"{code[:HALF]} {code[HALF:]}",
            "code_until": now + screens.LASTS,
            "screen_url": self.request.build_absolute_uri(reverse("screen")),
        }
        return render(self.request, self.templates[0], context)


def called(wall: str) -> str:
    return wall or "all of them"


HALF = screens.LENGTH // 2  # people read and type a code in two groups
wall_links, revoke_wall_link = WallLinks.views()


@never_cache
@require_POST
@WallLinks.guard
def screen_code(request: HttpRequest, number: int) -> HttpResponseBase:
    return WallLinks(request).make_code(number)


@never_cache
@require_safe
@WallLinks.guard
def wall_screens(request: HttpRequest, number: int) -> HttpResponseBase:
    """The screens on which a code of this link was typed, the last seen first."""
    link = row_of(WallLink.objects.all(), number)
    rows = link.screens.exclude(digest=None).order_by("-last_seen_at", "-pk")
    open_by = screens.is_open(link, clock.now())
    return render(request, "wall_links/screens.html", {"link": link, "rows": rows, "open": open_by})


@never_cache
@require_POST
@WallLinks.guard
def revoke_screen(request: HttpRequest, number: int) -> HttpResponseBase:
    """End one screen alone: its cookie opens nothing any more."""
    screen = (
        WallScreen.objects.exclude(digest=None).filter(pk=number).select_related("link").first()
    )
    if screen is None:
        messages.info(request, "This screen has ended already.")
        return redirect("wall_links")
    screen.delete()
    running_board().rights.look_now()
    about = f"screen {number} of wall link {screen.link.name}"
    record_by(request, SecurityEvent.SCREEN_REVOKED, about)
    messages.success(request, "The screen opens nothing any more; the others of its link stay.")
    return redirect("wall_screens", screen.link.pk)
