"""The log of messages: what was sent, waits, failed or was held back."""

from __future__ import annotations

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard.pages.notifications.access import receivers_required
from dashboard.parts.query.url_parameters import BadFilter, number, one_of, page_number
from leases.history.notify.outbox import decode_message
from leases.models import Notification, Receiver

PER_PAGE = 50
LARGEST = 2**31
STATES = (
    Notification.WAITING, Notification.SENT, Notification.FAILED, Notification.SILENCED,
    Notification.WITHDRAWN,
)  # fmt: skip


@require_safe
@receivers_required
def notification_log(request: HttpRequest) -> HttpResponseBase:
    """The newest first, of `?receiver=` and `?state=`."""
    names = list(Receiver.objects.order_by("name").values_list("pk", "name"))
    context = {"states": STATES, "names": names}
    try:
        state = one_of(request.GET, "state", ("", *STATES))
        chosen = request.GET.get("receiver", "")
        of = number(request.GET, "receiver", default=0, largest=LARGEST) if chosen else 0
        wanted = page_number(request.GET)
    except BadFilter as refused:
        return render(
            request, "notifications/log.html", context | {"error": str(refused)}, status=400
        )
    rows = Notification.objects.select_related("receiver").order_by("-made_at", "-pk")
    if state:
        rows = rows.filter(state=state)
    if of:
        rows = rows.filter(receiver=of)
    page = Paginator(rows, PER_PAGE).get_page(wanted)
    lines = [{"row": row, "message": decode_message(row.content)} for row in page]
    shown = {"page": page, "lines": lines, "state": state, "chosen": of}
    return render(request, "notifications/log.html", context | shown)
