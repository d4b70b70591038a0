"""Saved views: a person names a page with its filter, opens, shares and removes it."""

from typing import Any, cast

import msgspec
from django import forms
from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from dashboard import clock
from dashboard.access.guards import ClusterRequest, check_view, person_required
from dashboard.access.roles import SAVED_VIEWS
from dashboard.forms.admin_form import PlainForm
from dashboard.forms.fields import TextLine
from dashboard.forms.make_and_revoke import name_field, reads_and_writes
from dashboard.lists.declaration import FoundRows, List
from dashboard.lists.url_parameters import LIMIT, PAGE, ListFilter, Parameter, typed
from dashboard.parts.page_links import NotKnown
from dashboard.parts.saved_view import (
    MAX_ADDRESS,
    NotSaved,
    page_url,
    problem_of,
    read_address,
    says,
    start_of,
    title_of,
    visible_to,
    wall_url,
    words_of,
)
from leases.models import Person, SavedView

MAX_VIEWS = 100  # of a person
by_a_person = person_required("Saved views")


class ViewFilter(ListFilter, frozen=True, kw_only=True):
    """`text` is part of a name, in any case."""

    PARAMETERS = {"text": Parameter("q"), "page": PAGE, "limit": LIMIT}
    text: str = ""


class ViewLine(msgspec.Struct, frozen=True, kw_only=True):
    """A view as its row shows it; `may_end`: an admin may end the sharing of others."""

    view: SavedView
    title: str
    words: list[str]
    problem: str
    wall_url: str
    own: bool
    starts: bool
    may_end: bool


class SavedViews(List[ViewFilter, SavedView]):
    """The own views, and those that others share."""

    name = "saved_views"
    reads = ViewFilter
    templates = ("views/index.html", "views/_rows.html")

    def find(self) -> FoundRows[SavedView]:
        found = visible_to(self.request.user)
        if self.wanted.text:
            found = found.filter(name__icontains=self.wanted.text)
        return self.paginated(found)

    def item(self, row: SavedView) -> dict[str, Any]:
        link = reverse("saved_view", args=[row.pk])
        return {
            "number": row.pk,
            "name": row.name,
            "owner": row.owner.get_username(),
            "own": row.owner_id == self.request.user.pk,
            "shared": row.shared,
            "page": row.page,
            "cluster": row.cluster or None,
            "query": row.query,
            "url": self.request.build_absolute_uri(link),
            "problem": problem_of(row, self.request.user, self.now) or None,
        }

    def page(self, found: FoundRows[SavedView]) -> dict[str, Any]:
        start = start_of(self.request.user)
        lines = [self._line(view, start) for view in found.rows]
        return self._frame() | {"lines": lines, "page": found.more, "start": start}

    def refused(self) -> dict[str, Any]:
        return self._frame() | {"board": self.reads.typed(self.request.GET)}

    def _frame(self) -> dict[str, Any]:
        return {
            "board": self.wanted.texts(),
            "filtered": bool(self.wanted.text),
            "clear_url": self.links.path,
            "json_url": self.links.url_as("json"),
        }

    def _line(self, view: SavedView, start: SavedView | None) -> ViewLine:
        user, problem = self.request.user, problem_of(view, self.request.user, self.now)
        own = view.owner_id == user.pk
        return ViewLine(
            view=view,
            title=title_of(view.page),
            words=words_of(view),
            problem=problem,
            wall_url="" if problem else wall_url(view),
            own=own,
            starts=view == start,
            may_end=not own and user.has_perm(SAVED_VIEWS),
        )


class NameForm(PlainForm):
    """What a view is called, and whether others see it."""

    name = name_field("view", "You find the view by this name, also with Ctrl-K.")
    shared = forms.BooleanField(
        label="Share it with everybody who may read here",
        required=False,
        help_text="They still see only what they may read.",
    )

    def __init__(self, *args: Any, owner: Any, view: SavedView | None = None, **more: Any) -> None:
        super().__init__(*args, **more)
        self.others = SavedView.objects.filter(owner=owner.pk)
        if view is not None:
            self.others = self.others.exclude(pk=view.pk)

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if not name.isprintable():
            raise forms.ValidationError("A name is one line of printable characters.")
        if self.others.filter(name=name).exists():
            raise forms.ValidationError("You have a view of this name already; choose another.")
        return name


class SaveForm(NameForm):
    """`request` says who saves, and under which host name this board is read."""

    field_order = ("name", "address", "shared")
    address = forms.CharField(
        label="Page",
        max_length=MAX_ADDRESS,
        widget=TextLine(mono=True, spellcheck="false"),
        help_text="The address of a page of this board, with its filter.",
        error_messages={"required": "Copy the address of a page of this board here."},
    )

    def __init__(self, *args: Any, request: HttpRequest, **more: Any) -> None:
        super().__init__(*args, owner=request.user, **more)
        self.request = request

    def read(self, address: str) -> SavedView:
        request = self.request
        return read_address(address, host=request.get_host(), user=request.user, now=clock.now())

    def clean_address(self) -> SavedView:
        try:
            return self.read(self.cleaned_data["address"])
        except NotSaved as refused:
            raise forms.ValidationError(str(refused)) from refused

    def clean(self) -> dict[str, Any]:
        if self.others.count() >= MAX_VIEWS:
            self.add_error("name", f"You have {MAX_VIEWS} views, which is the most. Remove some.")
        return super().clean() or {}


@require_safe
def saved_views(request: HttpRequest) -> HttpResponseBase:
    return check_view(request) or SavedViews(cast("ClusterRequest", request)).answer()


@never_cache
@reads_and_writes
@by_a_person
def save_view(request: HttpRequest) -> HttpResponse:
    """Name the page of `?from=`, or of an address that is typed."""
    if request.method != "POST":
        return _ask_for_a_name(request)
    form = SaveForm(request.POST, request=request)
    if form.is_valid():
        view: SavedView = form.cleaned_data["address"]
        given = {
            "shared": form.cleaned_data["shared"],
            "page": view.page,
            "cluster": view.cluster,
            "query": view.query,
            "created_at": clock.now(),
        }
        made, is_new = SavedView.objects.get_or_create(
            owner_id=request.user.pk, name=form.cleaned_data["name"], defaults=given
        )
        if is_new:
            return _back(request, f"Saved {made.name!r}.")
        form.add_error("name", "You have a view of this name already; choose another.")
    return render(request, "views/new.html", {"form": form}, status=422)


def _ask_for_a_name(request: HttpRequest) -> HttpResponse:
    address = typed(request.GET, "from")
    form, context = SaveForm(request=request), dict[str, Any]()
    if address:
        try:
            view = form.read(address[: MAX_ADDRESS + 1])
            address = page_url(view)
            context["title"], context["cluster_name"] = title_of(view.page), view.cluster
            context["words"] = words_of(view)
        except NotSaved as refused:
            context["refused"] = str(refused)
    form.initial["address"] = address[:MAX_ADDRESS]
    return render(request, "views/new.html", context | {"form": form})


@require_safe
def saved_view(request: HttpRequest, number: int) -> HttpResponseBase:
    """Lead to its page. One that cannot be opened is kept."""
    refusal = check_view(request)
    if refusal is not None:
        return refusal
    view = visible_to(request.user).filter(pk=number).first()
    if view is None:
        raise _not_known("There is no such saved view, or it is not shared with you any more.")
    if problem := problem_of(view, request.user, clock.now()):
        told = (
            f"The saved view {view.name!r} ({says(view)}) is kept, but cannot be opened: {problem}"
        )
        raise _not_known(told, "This view cannot be opened")
    return redirect(page_url(view))


@never_cache
@reads_and_writes
@by_a_person
def edit_view(request: HttpRequest, number: int) -> HttpResponse:
    """Rename it, or share it or not. Only its owner may."""
    view = SavedView.objects.filter(owner=request.user.pk, pk=number).first()
    if view is None:
        raise _not_known("You have no such saved view.")
    named: dict[str, Any] = {"owner": request.user, "view": view}
    form = NameForm(initial={"name": view.name, "shared": view.shared}, **named)
    if request.method == "POST":
        form = NameForm(request.POST, **named)
        if form.is_valid():
            view.name, view.shared = form.cleaned_data["name"], form.cleaned_data["shared"]
            view.save(update_fields=["name", "shared"])
            return _back(request, f"Saved {view.name!r}.")
    context = {"form": form, "view": view, "says": says(view)}
    return render(request, "views/edit.html", context, status=422 if form.errors else 200)


@require_POST
@by_a_person
def remove_view(request: HttpRequest, number: int) -> HttpResponse:
    """Remove an own view. An admin ends the sharing of another's, who keeps it."""
    view = visible_to(request.user).filter(pk=number).first()
    own = view is not None and view.owner_id == request.user.pk
    if view is None or not (own or request.user.has_perm(SAVED_VIEWS)):
        raise _not_known("You have no such saved view.")
    if own:
        view.delete()
        return _back(request, f"Removed {view.name!r}.")
    view.shared = False
    view.save(update_fields=["shared"])
    return _back(request, f"{view.name!r} is not shared any more. {view.owner} keeps it.")


@require_POST
@by_a_person
def start_view(request: HttpRequest) -> HttpResponse:
    """Start with the view of the posted number, or with no view."""
    text = request.POST.get("number", "")
    view = None
    if text.isascii() and text.isdecimal():
        view = visible_to(request.user).filter(pk=int(text[:18])).first()
    if view is None and text:
        raise _not_known("There is no such saved view, or it is not shared with you any more.")
    person = cast("User", request.user)
    Person.objects.update_or_create(user_id=person.pk, defaults={"start": view})
    return _back(request, f"You start with {view.name!r}." if view else "You start with no view.")


def _not_known(text: str, title: str = "") -> NotKnown:
    return NotKnown(text, reverse("saved_views"), "Saved views", title)


def _back(request: HttpRequest, told: str) -> HttpResponse:
    messages.success(request, told)
    return redirect("saved_views")
