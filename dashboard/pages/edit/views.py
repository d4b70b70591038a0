"""Edit, release or hand over one Lease, by form or as YAML; and what the cluster would refuse."""

from datetime import timedelta
from typing import Any

from asgiref.sync import sync_to_async
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, QueryDict
from django.shortcuts import render
from django.views.decorators.http import require_http_methods, require_safe

from dashboard.access.guards import check_editor, find_cluster
from dashboard.forms import edit_form
from dashboard.forms.fields import Collision
from dashboard.forms.yaml_form import YamlForm
from dashboard.lists.url_parameters import BadFilter, one_of, text
from dashboard.pages.edit.form_page import FormPage, answer
from dashboard.pages.edit.what_happens import WhatHappens, of_edit, of_hand_over, of_release
from dashboard.parts.formatting import when
from dashboard.parts.lease_head import to_yaml, without_managed_fields
from dashboard.parts.names import MAX_IDENTITY, holder_view
from dashboard.parts.write_access import ON_LEASE, ON_LIST, may_write_each, rights_of
from leases.actions.write_lease import DryRun, Guard, Moved, Refused, same_term
from leases.domain import edit
from leases.domain.election import CandidateState, standing
from leases.domain.lease import Lease, ObjectName
from leases.history.timeline_lanes import lanes
from leases.kube.lease_client import candidates_of
from leases.wire.status import ApiError, NotFound
from leases.wire.watch_decoding import lease_of


@require_http_methods(["GET", "HEAD", "POST"])
async def lease_edit(
    request: HttpRequest, cluster: str, namespace: str, name: str
) -> HttpResponseBase:
    """GET draws the form; POST asks for a dry run; POST with `confirm` writes."""
    return await answer(EditPage, request, cluster, ObjectName(namespace, name))


class EditPage(FormPage[edit_form.EditForm]):
    template = "forms/edit.html"

    def unbound(self) -> edit_form.EditForm:
        """The present values; `?holder=` fills in another holder."""
        initial = edit_form.initial_of(self.tracked.lease)
        if "holder" in self.request.GET:
            initial["holder_identity"] = self.request.GET["holder"]
        return edit_form.EditForm(initial=initial)

    def bound(self, data: QueryDict, *, saving: bool) -> edit_form.EditForm:
        form = edit_form.EditForm(data, saving=saving)
        form.current = self.tracked.lease
        return form

    def wanted(self, form: edit_form.EditForm) -> edit.FieldEdit:
        return form.wanted()

    def guard(self, form: edit_form.EditForm) -> Guard:
        def guard(_: dict[str, Any], current: Lease) -> None:
            if edit.term_of(current) != self.seen_term(form) or form.collisions(
                current, moved=False
            ):
                raise Refused

        return guard

    def seen_term(self, form: edit_form.EditForm) -> str:
        seen = form.was_shown
        return seen.term if seen else ""

    def collisions(self, form: edit_form.EditForm, moved: Moved) -> tuple[Collision, ...]:
        another = edit.term_of(moved.lease) != self.seen_term(form)
        return form.collisions(moved.lease, moved=another)

    def rebased(self, form: edit_form.EditForm, current: dict[str, Any]) -> edit_form.EditForm:
        return form.rebased(lease_of(current))

    def previewed(self, form: edit_form.EditForm, verdict: DryRun) -> edit_form.EditForm:
        return self.rebased(form, verdict.before)

    def what_happens(self, form: edit_form.EditForm) -> WhatHappens | None:
        if not form.is_bound or not form.is_valid():
            return None
        return of_edit(self.tracked, form.wanted(), self.now)


LOOKS_BACK = timedelta(days=30)
MAX_CHOICES = 6
WITHIN = 3.0  # seconds for the list of candidates


@require_http_methods(["GET", "HEAD", "POST"])
async def lease_hand_over(
    request: HttpRequest, cluster: str, namespace: str, name: str
) -> HttpResponseBase:
    """GET draws the form; POST asks for a dry run; POST with `confirm` writes."""
    return await answer(HandOverPage, request, cluster, ObjectName(namespace, name))


class HandOverPage(FormPage[edit_form.HandOverForm]):
    template = "forms/hand_over.html"
    choices: tuple[edit_form.NextHolder, ...] = ()

    async def prepare(self) -> None:
        candidates = await self._candidates() if edit.is_coordinated(self.tracked.lease) else ()
        before = await sync_to_async(self._before)()
        named = {one.identity for one in candidates}
        others = (one for one in before if one.identity not in named)
        self.choices = (*candidates, *others)[:MAX_CHOICES]

    @property
    def _people(self) -> dict[str, Any]:
        return {"choices": self.choices, "holder": self.tracked.holder}

    def unbound(self) -> edit_form.HandOverForm:
        """`?holder=` chooses a holder."""
        initial = edit_form.HandOverForm.initial_of(self.tracked.lease)
        if wanted := self.request.GET.get("holder", ""):
            known = any(one.identity == wanted for one in self.choices)
            initial |= {"to": wanted} if known else {"to": edit_form.ANOTHER, "other": wanted}
        return edit_form.HandOverForm(initial=initial, **self._people)

    def bound(self, data: QueryDict, *, saving: bool) -> edit_form.HandOverForm:
        return edit_form.HandOverForm(data, saving=saving, **self._people)

    def wanted(self, form: edit_form.HandOverForm) -> edit.HandOver:
        return form.wanted()

    def guard(self, form: edit_form.HandOverForm) -> Guard:
        return same_term(form.cleaned_data["seen_term"])

    def rebased(
        self, form: edit_form.HandOverForm, current: dict[str, Any]
    ) -> edit_form.HandOverForm:
        data = self.request.POST.copy()
        data["seen_term"] = edit_form.HandOverForm.initial_of(lease_of(current))["seen_term"]
        return edit_form.HandOverForm(data, **self._people)

    def what_happens(self, form: edit_form.HandOverForm) -> WhatHappens | None:
        to = form.chosen
        if form.is_bound and form.is_valid():
            to = form.cleaned_data["next"]
        return of_hand_over(self.tracked, to, self.now) if to else None

    async def _candidates(self) -> tuple[edit_form.NextHolder, ...]:
        """The LeaseCandidates, ready ones first; none if the cluster does not tell."""
        try:
            found = await candidates_of(self.cluster.writer, self.key, within=WITHIN) or ()
        except ApiError:
            return ()
        states = [(one.name, standing(one, self.now)) for one in found]
        states.sort(key=lambda state: state[1] is not CandidateState.READY)
        return tuple(
            edit_form.NextHolder(identity=name, view=view, note=f"candidate, {state.value}")
            for name, state in states
            if name != self.tracked.holder and (view := holder_view(name)) is not None
        )

    def _before(self) -> tuple[edit_form.NextHolder, ...]:
        """Who held it before, the latest first."""
        since = self.now - LOOKS_BACK
        found = lanes(self.cluster.name, [self.key], since=since, until=self.now)
        choices: dict[str, edit_form.NextHolder] = {}
        for term in reversed(found[0].life.terms if found else ()):
            view = holder_view(term.holder)
            typed = term.holder.isprintable() and len(term.holder) <= MAX_IDENTITY
            if view is None or term.until is None or not typed:
                continue
            if term.holder != self.tracked.holder and term.holder not in choices:
                note = f"held it until {when(term.until, self.now)}"
                choices[term.holder] = edit_form.NextHolder(
                    identity=term.holder, view=view, note=note
                )
        return tuple(choices.values())


@require_http_methods(["GET", "HEAD", "POST"])
async def lease_release(
    request: HttpRequest, cluster: str, namespace: str, name: str
) -> HttpResponseBase:
    """GET shows what a release would do; POST with `confirm` writes it."""
    return await answer(ReleasePage, request, cluster, ObjectName(namespace, name))


class ReleasePage(FormPage[edit_form.ReleaseForm]):
    template = "forms/release.html"
    previews_at_once = True

    def unbound(self) -> edit_form.ReleaseForm:
        return edit_form.ReleaseForm(initial=edit_form.ReleaseForm.initial_of(self.tracked.lease))

    def bound(self, data: QueryDict, *, saving: bool) -> edit_form.ReleaseForm:
        return edit_form.ReleaseForm(data, saving=saving)

    def wanted(self, form: edit_form.ReleaseForm) -> edit.Release:
        return edit.Release()

    def guard(self, form: edit_form.ReleaseForm) -> Guard:
        return same_term(str(form["seen_term"].value()))

    def rebased(
        self, form: edit_form.ReleaseForm, current: dict[str, Any]
    ) -> edit_form.ReleaseForm:
        data = self.request.POST.copy()
        data["seen_term"] = edit_form.ReleaseForm.initial_of(lease_of(current))["seen_term"]
        return edit_form.ReleaseForm(data)

    def what_happens(self, form: edit_form.ReleaseForm) -> WhatHappens | None:
        return of_release(self.tracked, self.now)


RENEWED = (("spec", "renewTime"),)  # a holder writes it all the time
ORDER = ("apiVersion", "kind", "metadata", "spec")
MAX_SHOWN = 200


@require_http_methods(["GET", "HEAD", "POST"])
async def lease_yaml(
    request: HttpRequest, cluster: str, namespace: str, name: str
) -> HttpResponseBase:
    """GET draws the editor; POST asks for a dry run; POST with `confirm` writes."""
    return await answer(YamlPage, request, cluster, ObjectName(namespace, name))


class YamlPage(FormPage[YamlForm]):
    template = "forms/yaml.html"
    whole: dict[str, Any] = {}  # the Lease as the cluster has it, with all its fields
    unread = ""  # why it could not be read

    async def prepare(self) -> None:
        if self.request.method == "POST":
            return
        try:
            self.whole = await self.cluster.writer.raw_get(self.key)
        except NotFound:
            raise Http404(f"There is no Lease {self.key} in {self.cluster.name}.") from None
        except ApiError as error:
            self.unread = f"The cluster did not send the Lease: {error}"

    def unbound(self) -> YamlForm:
        text = _text(self.whole) if self.whole else ""
        term = {"seen_term": edit.term_of(lease_of(self.whole))} if self.whole else {}
        return YamlForm(initial={"text": text, "shown": text} | term)

    async def first(self) -> HttpResponseBase:
        return await self.draw(self.unbound(), error=self.unread)

    def bound(self, data: QueryDict, *, saving: bool) -> YamlForm:
        return YamlForm(data, saving=saving)

    def wanted(self, form: YamlForm) -> edit.YamlEdit:
        return form.wanted()

    def guard(self, form: YamlForm) -> Guard:
        def guard(whole: dict[str, Any], current: Lease) -> None:
            if edit.term_of(current) != form.cleaned_data["seen_term"] or _collisions(form, whole):
                raise Refused

        return guard

    def collisions(self, form: YamlForm, moved: Moved) -> tuple[Collision, ...]:
        return _collisions(form, moved.current)

    def rebased(self, form: YamlForm, current: dict[str, Any]) -> YamlForm:
        """The text as it is now, with the changes of the person in it."""
        data = self.request.POST.copy()
        whole = without_managed_fields(current)
        data["shown"] = _text(whole)
        data["text"] = _text(edit.merged(whole, form.cleaned_data["changes"]))
        data["seen_term"] = edit.term_of(lease_of(current))
        return YamlForm(data)

    def what_happens(self, form: YamlForm) -> WhatHappens | None:
        if not form.is_bound or not form.is_valid():
            return None
        return of_edit(self.tracked, _as_edit(form.cleaned_data["changes"]), self.now)

    def place(self, form: YamlForm, error: ApiError) -> str:
        """Put each cause at the line of its field."""
        for cause in error.causes:
            form.refuse(cause.field, f"{cause.field}: {cause.message}")
        return "" if error.causes else f"The cluster refused: {error}"


def _text(whole: dict[str, Any]) -> str:
    item = without_managed_fields(whole)
    known = {name: item[name] for name in ORDER if name in item}
    return to_yaml(known | item)


def _collisions(form: YamlForm, whole: dict[str, Any]) -> tuple[Collision, ...]:
    """The changed fields that somebody else changed too."""
    shown = form.shown_value()
    found = []
    for path, yours in edit.leaves(form.cleaned_data["changes"]):
        theirs = edit.at_path(whole, path)
        if path in RENEWED or theirs in (edit.at_path(shown, path), yours):
            continue
        field = ".".join(path)
        found.append(Collision(field, field, _short(yours), _short(theirs), path=path))
    return tuple(found)


def _short(value: Any) -> str:
    return (
        str(value)[:MAX_SHOWN] if isinstance(value, str | int | float | list | dict) else "not set"
    )


def _as_edit(changes: dict[str, Any]) -> edit.FieldEdit:
    """The part of the changes that the forms know, for what they mean."""
    spec, metadata = changes.get("spec"), changes.get("metadata")
    parts = [
        part if isinstance(part, dict) else {}
        for part in (
            spec,
            metadata.get("labels") if isinstance(metadata, dict) else None,
            metadata.get("annotations") if isinstance(metadata, dict) else None,
        )
    ]
    return edit.FieldEdit(spec=parts[0], labels=parts[1], annotations=parts[2])


CHOICES = {",".join(verbs): verbs for verbs in (ON_LEASE, ON_LIST)}


@require_safe
async def write_rights(request: HttpRequest, cluster: str) -> HttpResponseBase:
    """`namespace` may be empty: all of them. `verbs` are those of a page's buttons."""
    refusal = await sync_to_async(check_editor)(request)
    if refusal is not None:
        return refusal
    watched = request.cluster = find_cluster(cluster)  # type: ignore[attr-defined]
    try:
        namespace = text(request.GET, "namespace")
        verbs = CHOICES[one_of(request.GET, "verbs", tuple(CHOICES))]
    except BadFilter as error:
        return HttpResponse(str(error), status=400, content_type="text/plain; charset=utf-8")
    answers = await may_write_each(watched, await request.auser(), namespace, verbs)
    context = {"rights": rights_of(answers)}
    return await sync_to_async(render)(request, "forms/_write_rights.html", context)
