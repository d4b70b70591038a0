"""What people make and revoke, declared once: one page lists it and makes more, one ends it."""

from collections.abc import Callable
from typing import Any, ClassVar, Generic, TypeVar

from django import forms
from django.contrib import messages
from django.db.models import Model, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from dashboard.access.security_log import SecurityEvent, record_by
from dashboard.forms.fields import TextLine

M = TypeVar("M", bound=Model)
F = TypeVar("F", bound=forms.Form)
View = Callable[..., HttpResponseBase]
reads_and_writes = require_http_methods(["GET", "HEAD", "POST"])


def name_field(what: str, help_text: str) -> forms.CharField:
    return forms.CharField(
        label="Name",
        max_length=100,
        widget=TextLine(),
        help_text=help_text,
        error_messages={"required": f"Write a name, so that you know the {what} again."},
    )


NO_ROW = "Nothing here has this number, or it was removed: choose again from the list."


def row_of(rows: QuerySet[M], number: int) -> M:
    """The row with this number. Raises Http404."""
    row = rows.filter(pk=number).first()
    if row is None:
        raise Http404(NO_ROW)
    return row


class MadeByPeople(Generic[M, F]):
    """A subclass declares one kind of thing, an instance answers one request about it.

    `route` is the name of the page that lists them, `templates` draw it and the question before
    one is revoked, where it is called `called`; without a second template a POST revokes at once.
    """

    model: type[M]
    route: ClassVar[str]
    templates: ClassVar[tuple[str, ...]]
    called: ClassVar[str] = ""
    guard: Callable[[View], View]
    made: ClassVar[SecurityEvent | None] = None  # in the security log
    revoked: ClassVar[SecurityEvent | None] = None

    def __init__(self, request: HttpRequest) -> None:
        self.request = request

    def form(self, data: Any) -> F:
        raise NotImplementedError

    def make(self, form: F) -> tuple[M | None, dict[str, Any] | str]:
        """Returns the row, if it is recorded here, with what the page shows only once, or with the
        sentence that leads back to the list.
        """
        raise NotImplementedError

    def listed(self) -> dict[str, Any]:
        raise NotImplementedError

    def about(self, row: M) -> str:
        """What the security log says of it."""
        raise NotImplementedError

    def rows(self) -> QuerySet[M]:
        """Those that this person may revoke."""
        return self.model._default_manager.all()  # noqa: SLF001

    def end(self, row: M) -> tuple[bool, str]:
        """Revoke it. Returns whether it was open until now, and what the person is told."""
        raise NotImplementedError

    def missing(self) -> HttpResponseBase:
        raise Http404(NO_ROW)

    def list_and_make(self) -> HttpResponseBase:
        posted = self.request.method == "POST"
        form = self.form(self.request.POST if posted else None)
        status, shown = 422 if form.errors else 200, dict[str, Any]()
        if form.is_valid():
            row, told = self.make(form)
            self._record(self.made, row)
            if isinstance(told, str):
                return self.back(told)
            form, shown = self.form(None), told
        context = {**self.listed(), "form": form, **shown}
        return render(self.request, self.templates[0], context, status=status)

    def ask_and_revoke(self, number: int) -> HttpResponseBase:
        row = self.rows().filter(pk=number).first()
        if row is None:
            return self.missing()
        if self.request.method != "POST":
            return render(self.request, self.templates[1], {self.called: row})
        was_open, told = self.end(row)
        self._record(self.revoked, row if was_open else None)
        return self.back(told)

    @classmethod
    def views(cls) -> tuple[View, View]:
        """The page that lists and makes, and the one that revokes."""

        def of_all(request: HttpRequest) -> HttpResponseBase:
            return cls(request).list_and_make()

        def of_one(request: HttpRequest, number: int) -> HttpResponseBase:
            return cls(request).ask_and_revoke(number)

        asks = reads_and_writes if len(cls.templates) > 1 else require_POST
        return never_cache(reads_and_writes(cls.guard(of_all))), asks(cls.guard(of_one))

    def _record(self, event: SecurityEvent | None, row: M | None) -> None:
        if event is not None and row is not None:
            record_by(self.request, event, self.about(row))

    def back(self, told: str) -> HttpResponse:
        if told:
            messages.success(self.request, told)
        return redirect(self.route)
