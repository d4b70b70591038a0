"""The receivers of messages: list, make, change, test, delete."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from dashboard import clock
from dashboard.access.security_log import SecurityEvent, record
from dashboard.access.sign_in.client_address import full_address
from dashboard.board import running_board
from dashboard.pages.notifications.access import receivers_required
from dashboard.pages.notifications.receiver_form import SORT_WORDS, ReceiverForm
from dashboard.parts.query.url_parameters import BadFilter, one_of
from leases.domain.cause.incident import Cause, Confidence
from leases.domain.notify.gravity import Gravity
from leases.domain.notify.message import Message, Stage
from leases.domain.notify.target import Sort
from leases.history.notify.claims import queue_test
from leases.models import Notification, Receiver

FORM_METHODS = ["GET", "HEAD", "POST"]
MAX_RECEIVERS = 100


@require_safe
@receivers_required
def notifications(request: HttpRequest) -> HttpResponseBase:
    waiting: dict[int, int] = {}
    rows = Notification.objects.filter(state=Notification.WAITING)
    for number in rows.values_list("receiver", flat=True):
        waiting[number] = waiting.get(number, 0) + 1
    found = [
        {"receiver": one, "sort": SORT_WORDS[Sort(one.sort)], "waiting": waiting.get(one.pk, 0)}
        for one in Receiver.objects.order_by("name")
    ]
    context = {"receivers": found, "sorts": list(SORT_WORDS.items())}
    return render(request, "notifications/index.html", context)


@require_http_methods(FORM_METHODS)
@receivers_required
def new_receiver(request: HttpRequest) -> HttpResponseBase:
    """Make a receiver of `?sort=`."""
    try:
        sort = Sort(one_of(request.GET, "sort", ("", *Sort)) or Sort.WEBHOOK)
    except BadFilter as refused:
        return _render(request, None, Sort.WEBHOOK, {"error": str(refused)}, status=400)
    form = _form(request, sort)
    if request.method == "POST" and Receiver.objects.count() >= MAX_RECEIVERS:
        error = f"There are {MAX_RECEIVERS} receivers, and there cannot be more."
        return _render(request, form, sort, {"error": error}, status=422)
    if form.is_valid():
        made = form.save(who=request.user.get_username(), now=clock.now())
        _record(request, SecurityEvent.RECEIVER_CREATED, made)
        messages.success(request, f"The receiver {made.name!r} is made. Send it a test.")
        return redirect("notifications")
    return _render(request, form, sort, {}, status=422 if form.errors else 200)


@require_http_methods(FORM_METHODS)
@receivers_required
def receiver(request: HttpRequest, number: int) -> HttpResponseBase:
    """Change a receiver."""
    one = _find(number)
    sort = Sort(one.sort)
    form = _form(request, sort, one)
    if form.is_valid():
        form.save(who=request.user.get_username(), now=clock.now())
        _record(request, SecurityEvent.RECEIVER_CHANGED, one)
        messages.success(request, f"The receiver {one.name!r} is changed.")
        return redirect("notifications")
    return _render(request, form, sort, {"receiver": one}, status=422 if form.errors else 200)


@require_POST
@receivers_required
def test_receiver(request: HttpRequest, number: int) -> HttpResponseBase:
    """Queue a test message; the log shows what became of it."""
    one, now = _find(number), clock.now()
    if not one.enabled:
        messages.error(request, f"The receiver {one.name!r} is switched off. Nothing is sent.")
        return redirect("notifications")
    message = Message(
        id="",
        stage=Stage.TEST,
        cluster="test",
        incident="test",
        cause=Cause.UNKNOWN,
        confidence=Confidence.CERTAIN,
        severity=Gravity.INFO,
        sentence=f"This is a test, sent by {request.user.get_username()}",
        began=now,
        ended=None,
        leases=(),
        leases_total=0,
        hosts=(),
        hosts_total=0,
        worst_gap_seconds=None,
        labels={"alertname": "LeaseboardTest", "severity": Gravity.INFO.value},
    )
    queue_test(one.pk, message, now)
    _record(request, SecurityEvent.RECEIVER_TESTED, one)
    messages.success(request, f"A test for {one.name!r} is queued. It is sent at once.")
    return redirect(f"{request.path.rpartition('receivers/')[0]}log/?receiver={one.pk}")


@require_http_methods(FORM_METHODS)
@receivers_required
def delete_receiver(request: HttpRequest, number: int) -> HttpResponseBase:
    """Ask first; POST deletes the receiver with its log."""
    one = _find(number)
    if request.method != "POST":
        return render(request, "notifications/delete.html", {"receiver": one})
    one.delete()
    _record(request, SecurityEvent.RECEIVER_DELETED, one)
    messages.success(request, f"The receiver {one.name!r} is deleted.")
    return redirect("notifications")


def _record(request: HttpRequest, event: SecurityEvent, one: Receiver) -> None:
    record(
        event,
        who=request.user.get_username(),
        address=full_address(request.META.get("REMOTE_ADDR")),
        about=f"receiver {one.name}: {SORT_WORDS[Sort(one.sort)]} to {one.shown}",
    )


def _find(number: int) -> Receiver:
    if number >= 2**63:
        raise Http404("There is no such receiver.")
    return get_object_or_404(Receiver, pk=number)


def _form(request: HttpRequest, sort: Sort, one: Receiver | None = None) -> ReceiverForm:
    data = request.POST if request.method == "POST" else None
    return ReceiverForm(data, sort=sort, clusters=running_board().clusters, receiver=one)


def _render(
    request: HttpRequest,
    form: ReceiverForm | None,
    sort: Sort,
    context: dict[str, Any],
    *,
    status: int,
) -> HttpResponseBase:
    shown: dict[str, Any] = {"form": form, "sort": sort, "sort_word": SORT_WORDS[sort]}
    shown["sorts"] = list(SORT_WORDS.items())
    return render(request, "notifications/receiver.html", shown | context, status=status)
