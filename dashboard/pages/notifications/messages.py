"""The log of messages; mutes and maintenance windows."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_safe

from dashboard import clock
from dashboard.board import running_board
from dashboard.forms.admin_form import PlainForm
from dashboard.forms.fields import Area, Dropdown, LeaseField, TextLine
from dashboard.forms.make_and_revoke import MadeByPeople
from dashboard.lists.url_parameters import (
    PAGE,
    BadFilter,
    ListFilter,
    Parameter,
    is_time_of_day,
    number,
    one_of,
)
from dashboard.pages.notifications.receivers import receivers_required
from dashboard.parts.formatting import ahead
from dashboard.parts.time_range import DAY, read_typed_time
from leases.domain.lease import ObjectName
from leases.domain.notify import Stage
from leases.history import outbox as stored
from leases.history.outbox import stored_message
from leases.models import Notification, QuietTime, Receiver

PER_PAGE = 50
STATES = (
    Notification.WAITING, Notification.SENT, Notification.FAILED, Notification.SILENCED,
    Notification.WITHDRAWN,
)  # fmt: skip


class MessageFilter(ListFilter, frozen=True, kw_only=True):
    """`receiver` is the number of one; 0: all of them."""

    PARAMETERS = {
        "state": Parameter("state", one_of, ("", *STATES)),
        "receiver": Parameter("receiver", number, 2**31),
        "page": PAGE,
    }
    state: str = ""
    receiver: int = 0


@require_safe
@receivers_required
def notification_log(request: HttpRequest) -> HttpResponseBase:
    """The newest first, of `?receiver=` and `?state=`."""
    names = list(Receiver.objects.order_by("name").values_list("pk", "name"))
    context = {"states": STATES, "names": names}
    try:
        wanted = MessageFilter.read(request.GET)
    except BadFilter as refused:
        return render(
            request, "notifications/log.html", context | {"error": str(refused)}, status=400
        )
    rows = Notification.objects.select_related("receiver").order_by("-made_at", "-pk")
    if wanted.state:
        rows = rows.filter(state=wanted.state)
    if wanted.receiver:
        rows = rows.filter(receiver=wanted.receiver)
    page = Paginator(rows, PER_PAGE).get_page(wanted.page)
    lines = [
        {
            "row": row,
            "message": stored_message(row) or {"sentence": f"Message {row.pk} is unreadable."},
        }
        for row in page
    ]
    # The outcome of a test comes by itself.
    waits = any(row.stage == Stage.TEST and row.state == Notification.WAITING for row in page)
    shown = {
        "waits": waits,
        "page": page,
        "lines": lines,
        "state": wanted.state,
        "chosen": wanted.receiver,
    }
    return render(request, "notifications/log.html", context | shown)


MAX_REASON = 500
MAX_LISTED = 500
JUST_NOW = timedelta(hours=1)  # so long ago a time of day has just passed


class QuietForm(PlainForm):
    """A mute, or a window. Empty fields mean all Leases, from now, until somebody ends it."""

    cluster = forms.ChoiceField(label="Cluster", required=False, widget=Dropdown())
    lease = LeaseField(help_text="Empty: all Leases.")
    since = forms.CharField(
        label="From, UTC",
        required=False,
        max_length=64,
        widget=TextLine(mono=True, placeholder="22:00, empty for now"),
    )
    until = forms.CharField(
        label="To, UTC",
        required=False,
        max_length=64,
        widget=TextLine(mono=True, placeholder="02:00 or 90 min"),
        help_text="Empty: until somebody ends it. A time of day that has passed is tomorrow's.",
    )
    reason = forms.CharField(label="Reason", max_length=MAX_REASON, widget=Area(rows=2))
    sure = forms.BooleanField(label="Mute it all the same", required=False)

    def __init__(self, *args: Any, clusters: Iterable[str], now: datetime, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices = [("", "all clusters"), *((name, name) for name in clusters)]
        self.fields["cluster"].choices = choices  # type: ignore[attr-defined]
        self._now = now

    def clean_since(self) -> datetime:
        """A time of day that has just passed means now; else the next one is meant."""
        since = self._moment("since", self._now) or self._now
        passed = since - DAY
        just = is_time_of_day(self.cleaned_data["since"]) and self._now - JUST_NOW <= passed
        return passed if just else since

    def clean_until(self) -> datetime | None:
        until = self._moment("until", self.cleaned_data.get("since") or self._now)
        if until is not None and until <= self._now:
            raise forms.ValidationError("This time has passed. Write a later one, with its day.")
        return until

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or {}
        since, until = given.get("since"), given.get("until")
        if since is not None and until is not None and until <= since:
            self.add_error("until", "It must end after it begins.")
        if (lease := given.get("lease")) and lease[0] and not given.get("sure"):
            where = [given["cluster"]] if given.get("cluster") else list(running_board().clusters)
            if not any(_may_have(cluster, ObjectName(*lease)) for cluster in where):
                has = f"{where[0]} does not have" if given.get("cluster") else "No cluster has"
                said = f"{has} this Lease or namespace now."
                self.add_error("lease", f"{said} Correct it, or choose “Mute it all the same”.")
        if not self.errors and not given.get("sure"):
            self._check_alike()
        if QuietTime.objects.count() >= MAX_LISTED:
            self.add_error("reason", f"There are {MAX_LISTED} of these. End some first.")
        return given

    def _check_alike(self) -> None:
        row = self.row("")
        other = stored.alike(row, self._now) if row.name else None
        if other is not None:
            said = f"This Lease is muted already {_span(other, self._now)}, by {other.who}."
            self.add_error("lease", f"{said} End that first, or choose “Mute it all the same”.")

    def _moment(self, name: str, after: datetime) -> datetime | None:
        try:
            label = str(self.fields[name].label).partition(",")[0]
            return read_typed_time(self.cleaned_data[name], label, after, ahead=True)
        except BadFilter as error:
            raise forms.ValidationError(str(error)) from error

    def row(self, who: str) -> QuietTime:
        given = self.cleaned_data
        namespace, name = given["lease"]
        return QuietTime(
            cluster=given["cluster"],
            namespace=namespace,
            name=name,
            since=given["since"],
            until=given["until"],
            reason=given["reason"],
            who=who,
        )


def _span(row: QuietTime, now: datetime) -> str:
    begins = f"from {ahead(row.since, now)} " if row.since > now else ""
    return f"{begins}until {ahead(row.until, now) if row.until else 'somebody ends it'}"


def _may_have(cluster: str, key: ObjectName) -> bool:
    """Whether the cluster has this Lease or namespace, or its Leases are not known yet."""
    store = running_board().clusters[cluster].store
    if not store.known:
        return True
    return store.get(key) is not None if key.name else bool(store.of_namespace(key.namespace))


class QuietTimes(MadeByPeople[QuietTime, QuietForm]):
    """Those that have not ended. `?cluster=` and `?lease=` fill the form."""

    model, route = QuietTime, "quiet_times"
    templates = ("notifications/quiet.html",)
    guard = staticmethod(receivers_required)

    def form(self, data: Any) -> QuietForm:
        initial = {name: self.request.GET.get(name, "")[:320] for name in ("cluster", "lease")}
        return QuietForm(data, initial=initial, clusters=running_board().clusters, now=clock.now())

    def make(self, form: QuietForm) -> tuple[None, str]:
        row = form.row(self.request.user.get_username())
        stored.add(row)
        return None, f"Messages are held back {_span(row, clock.now())} (UTC)."

    def end(self, row: QuietTime) -> tuple[bool, str]:
        stored.end(row.pk, clock.now())
        return True, "It has ended. What goes on is sent now."

    def back(self, told: str) -> HttpResponse:
        """To the page of the Lease, if that was asked for."""
        answer, path = super().back(told), self.request.POST.get("back", "")
        return redirect(path) if url_has_allowed_host_and_scheme(path, None) else answer

    def missing(self) -> HttpResponseBase:
        return self.back("It has ended. What goes on is sent now.")

    def listed(self) -> dict[str, Any]:
        now = clock.now()
        return {"listed": [{"row": row, "active": row.since <= now} for row in stored.listed(now)]}


quiet_times, end_quiet_time = QuietTimes.views()
