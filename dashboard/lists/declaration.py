"""A list, declared once: what its URL says, what it finds, and how it answers."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import msgspec
from django.core.paginator import Page, Paginator
from django.db.models import QuerySet
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import redirect

from dashboard import clock
from dashboard.access.guards import ClusterRequest
from dashboard.access.roles import VIEW
from dashboard.lists import responses
from dashboard.lists.controls import ListLinks
from dashboard.lists.url_parameters import FILTERS, BadFilter, UrlState
from leases.history.export import csv_cell

R = TypeVar("R")
W = TypeVar("W", bound=UrlState)
Json = dict[str, Any]
CSV, NDJSON = "csv", "ndjson"
CONTENT_TYPES = {CSV: "text/csv; charset=utf-8", NDJSON: "application/x-ndjson"}
ROWS_AT_ONCE = 2000


class FoundRows(msgspec.Struct, Generic[R], frozen=True):
    """One page. `older` is the cursor of the next one, if pages have no numbers; `more` is what a
    list needs beside its rows."""

    rows: Sequence[R]
    total: int
    number: int = 1
    older: str = ""
    more: Any = None


def csv_lines(fields: Iterable[str], rows: Iterable[Json]) -> Iterator[str]:
    """A header and one line for each row, safe for spreadsheets."""
    yield ",".join(fields) + "\r\n"
    for row in rows:
        yield ",".join(map(csv_cell, row.values())) + "\r\n"


class List(Generic[W, R]):
    """A subclass declares a list, an instance answers one request for it.

    `name` is that of its URL, `reads` what the URL says. `templates` draw the whole page and its
    part for htmx; `files` are the formats of all rows, of which `fields` are the names.
    """

    declared: ClassVar[dict[str, type["List[Any, Any]"]]] = {}
    name: ClassVar[str]
    reads: type[W]
    templates: ClassVar[tuple[str, str]]
    files: ClassVar[tuple[str, ...]] = ()
    fields: ClassVar[tuple[str, ...]] = ()
    permission: ClassVar[str] = VIEW  # what reading a file takes until its end
    shows_now: ClassVar[bool] = False  # the items show the present state of the cluster
    spans_clusters: ClassVar[bool] = False  # JSON says which of them are not live
    forms_ask_files: ClassVar[bool] = False  # so a browser gets a refused file's form back
    draws_unknown_formats: ClassVar[bool] = False  # the refusal of an unknown format is a page

    def __init_subclass__(cls) -> None:
        if hasattr(cls, "name"):
            List.declared[cls.name] = cls
            FILTERS[cls.name] = cls.reads

    def __init__(self, request: ClusterRequest) -> None:
        self.request, self.now, self.wanted = request, clock.now(), self.reads()
        self.answer_as = ""

    # What a list says of itself.

    def find(self) -> FoundRows[R]:
        """The wanted page. Raises BadFilter."""
        raise NotImplementedError

    def page(self, found: FoundRows[R]) -> Json:
        """The context of the templates."""
        raise NotImplementedError

    def leads_to(self, _found: FoundRows[R]) -> str:
        """The URL that the page leads to instead; "": it is drawn."""
        return ""

    def refused(self) -> Json:
        """The context beside the sentence that refuses a filter; `wanted` is the usual one."""
        raise NotImplementedError

    def item(self, row: R) -> Json:
        """A row as JSON says it."""
        raise NotImplementedError

    def cells(self, row: R) -> Json:
        """A row as CSV says it: numbers and texts."""
        return self.item(row)

    def every(self) -> Iterable[R]:
        """All rows, for a file. Raises BadFilter."""
        raise NotImplementedError

    def file_name(self) -> str:
        raise NotImplementedError

    @property
    def links(self) -> ListLinks:
        return ListLinks(self.request.path, self.wanted)

    def told(self) -> Json:
        """What JSON says beside the items."""
        return responses.unless_live(self.request.cluster, self.now) if self.shows_now else {}

    def query(self) -> str:
        """What an address of this page has behind its question mark."""
        return self.wanted.query()

    def next_url(self, found: FoundRows[R]) -> str | None:
        """The URL of the next page of JSON; None on the last one."""
        if found.number * self.wanted.limit >= found.total:
            return None
        query = self.request.GET.copy()
        query["page"] = str(found.number + 1)
        return self.request.build_absolute_uri(f"{self.request.path}?{query.urlencode()}")

    # What all lists do.

    def answer(self) -> HttpResponseBase:
        """As a page, as its part, as JSON, or as a file of all rows."""
        try:
            self.answer_as = responses.read_format(self.request, (*responses.FORMATS, *self.files))
            self.wanted = self.reads.read(self.request.GET, self.now)
            if self.answer_as in CONTENT_TYPES:
                return self._file()
            found = self.find()
        except BadFilter as refused:
            return self._refuse(refused)
        if self.answer_as == "json":
            return responses.items(
                [self.item(row) for row in found.rows],
                total=found.total,
                next_url=self.next_url(found),
                now=self.now,
                told=self.told(),
            )
        if (url := self.leads_to(found)) and not self.request.htmx:
            return redirect(url)
        context = self.page(found)
        return responses.page(self.request, *self.templates, context, query=self.query())

    def paginated(self, rows: QuerySet[Any]) -> FoundRows[R]:
        """The wanted page of a table, or the last one; `more` is Django's page."""
        page: Page[Any] = Paginator(rows, self.wanted.limit).get_page(self.wanted.page)
        return FoundRows(list(page.object_list), page.paginator.count, page.number, more=page)

    def cut(self, rows: Sequence[R]) -> FoundRows[R]:
        """The wanted page of all rows, or the last one."""
        number, place = self.wanted.page_of(len(rows))
        return FoundRows(rows[place], len(rows), number)

    def _file(self) -> HttpResponseBase:
        rows = self.every()
        return responses.stream(
            self.request,
            csv_lines(self.fields, map(self.cells, rows))
            if self.answer_as == CSV
            else (msgspec.json.encode(self.item(row)).decode() + "\n" for row in rows),
            content_type=CONTENT_TYPES[self.answer_as],
            filename=f"{self.file_name()}.{self.answer_as}",
            permission=self.permission,
        )

    def _refuse(self, refused: BadFilter) -> HttpResponse:
        """In a sentence: as JSON to a program, beside what was typed to a person."""
        wanted = self.request.GET.get("format") or "html"
        unknown = wanted not in ("json", *self.files) and self.draws_unknown_formats
        by_form = self.forms_ask_files and wanted in self.files
        by_form = by_form and "text/html" in self.request.headers.get("Accept", "")
        if wanted != "html" and not unknown and not by_form:
            return responses.json({"error": str(refused)}, status=400)
        usual = type(self)(self.request)
        context = usual.refused() | {"error": refused.said, "bad": refused.parameter}
        return responses.page(self.request, *self.templates, context, status=400)


class Stored(Protocol):
    """A module of history whose rows a trail shows."""

    def matching(self, wanted: Any, /) -> QuerySet[Any]:
        """The rows that are wanted, newest first."""

    def as_item(self, row: Any, /) -> Json:
        """A row as JSON."""


class Trail(List[W, R]):
    """Rows of a table, newest first; a file has all of them, oldest first."""

    files = (CSV, NDJSON)
    file = ""  # how names of files begin
    stored: Stored

    def item(self, row: R) -> Json:
        return self.stored.as_item(row)

    def line(self, row: R) -> Any:
        """A row as the page shows it."""
        raise NotImplementedError

    def choices(self) -> Json:
        """What the form offers."""
        raise NotImplementedError

    def find(self) -> FoundRows[R]:
        return self.paginated(self.stored.matching(self.wanted))

    def every(self) -> Iterable[R]:
        return (
            self.stored.matching(self.wanted).order_by("at", "id").iterator(chunk_size=ROWS_AT_ONCE)
        )

    def file_name(self) -> str:
        return f"{self.file}-{self.now:%Y%m%dT%H%M%SZ}"

    def query(self) -> str:
        return self._whole.query()

    def page(self, found: FoundRows[R]) -> Json:
        return self._controls() | {"lines": list(map(self.line, found.rows)), "page": found.more}

    def refused(self) -> Json:
        return self._controls() | {"board": self.reads.typed(self.request.GET)}

    @property
    def _whole(self) -> W:
        """The filter without a choice of page."""
        return self.wanted.replace(page=1, limit=self.reads().limit)

    def _controls(self) -> Json:
        links = ListLinks(self.request.path, self._whole)
        return {
            "board": self.wanted.texts(),
            "filtered": bool(self.query()),
            "clear_url": links.path,
            **{f"{one}_url": links.url_as(one) for one in self.files},
            **self.choices(),
        }
