"""Edit one Lease as YAML: for what the forms do not cover."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponseBase, QueryDict
from django.views.decorators.http import require_http_methods

from dashboard.forms.collision import Collision
from dashboard.forms.yaml_form import YamlForm
from dashboard.pages.edit.form_page import FormPage, answer
from dashboard.pages.edit.what_happens import WhatHappens, of_edit
from dashboard.parts.frame.lease_yaml import to_yaml, without_managed_fields
from leases.actions.guarded_write import Guard, Moved, Refused
from leases.domain.edit.lease_write import FieldEdit, YamlEdit
from leases.domain.edit.merge_patch import at_path, leaves, merged
from leases.domain.edit.term import term_of
from leases.domain.lease import Lease, ObjectName
from leases.wire.status import ApiError, NotFound
from leases.wire.watch_decoding import lease_of

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
        term = {"seen_term": term_of(lease_of(self.whole))} if self.whole else {}
        return YamlForm(initial={"text": text, "shown": text} | term)

    async def first(self) -> HttpResponseBase:
        return await self.draw(self.unbound(), error=self.unread)

    def bound(self, data: QueryDict, *, saving: bool) -> YamlForm:
        return YamlForm(data, saving=saving)

    def wanted(self, form: YamlForm) -> YamlEdit:
        return form.wanted()

    def guard(self, form: YamlForm) -> Guard:
        def guard(whole: dict[str, Any], current: Lease) -> None:
            if term_of(current) != form.cleaned_data["seen_term"] or _collisions(form, whole):
                raise Refused

        return guard

    def collisions(self, form: YamlForm, moved: Moved) -> tuple[Collision, ...]:
        return _collisions(form, moved.current)

    def rebased(self, form: YamlForm, current: dict[str, Any]) -> YamlForm:
        """The text as it is now, with the changes of the person in it."""
        data = self.request.POST.copy()
        whole = without_managed_fields(current)
        data["shown"] = _text(whole)
        data["text"] = _text(merged(whole, form.cleaned_data["changes"]))
        data["seen_term"] = term_of(lease_of(current))
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
    for path, yours in leaves(form.cleaned_data["changes"]):
        theirs = at_path(whole, path)
        if path in RENEWED or theirs in (at_path(shown, path), yours):
            continue
        field = ".".join(path)
        found.append(Collision(field, field, _short(yours), _short(theirs), path=path))
    return tuple(found)


def _short(value: Any) -> str:
    return (
        str(value)[:MAX_SHOWN] if isinstance(value, str | int | float | list | dict) else "not set"
    )


def _as_edit(changes: dict[str, Any]) -> FieldEdit:
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
    return FieldEdit(spec=parts[0], labels=parts[1], annotations=parts[2])
