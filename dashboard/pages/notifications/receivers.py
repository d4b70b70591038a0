"""The receivers of messages: list, make, change, test, delete."""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

import msgspec
from django import forms
from django.conf import settings
from django.contrib import messages
from django.core.validators import validate_email
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe
from msgspec.structs import asdict

from dashboard import clock
from dashboard.access.guards import right_required
from dashboard.access.kept_secrets import CannotUnseal, seal, unseal
from dashboard.access.roles import RECEIVERS
from dashboard.access.security_log import SecurityEvent, record_by
from dashboard.board import running_board
from dashboard.forms.admin_form import Hidden, Names, PlainForm, Some
from dashboard.forms.fields import Dropdown, TextLine, WholeNumber
from dashboard.forms.make_and_revoke import MadeByPeople, row_of
from dashboard.lists.url_parameters import BadFilter, one_of
from dashboard.parts.cause_words import CAUSE_WORDS
from dashboard.parts.formatting import at_or_now
from leases.domain.incident import Cause, Confidence
from leases.domain.kind import Kind
from leases.domain.notify import Choice, Gravity, Message, Security, Sort, Stage, Target
from leases.domain.phase import Phase
from leases.history.deliveries import address_of_pages, drop_waiting, note_address, queue_test
from leases.models import Notification, Receiver


def receivers_required(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """For those who may set where messages go: admins."""
    return never_cache(right_required(RECEIVERS, "manage notifications")(view))


SORT_WORDS = {
    Sort.WEBHOOK: "Webhook", Sort.SLACK: "Slack", Sort.ALERTMANAGER: "Alertmanager",
    Sort.EMAIL: "E-mail", Sort.PAGERDUTY: "PagerDuty", Sort.OPSGENIE: "Opsgenie",
    Sort.TEAMS: "Microsoft Teams",
}  # fmt: skip
TARGET_FIELDS = {
    Sort.WEBHOOK: ("url", "secret"),
    Sort.SLACK: ("url",),
    Sort.ALERTMANAGER: ("url", "secret"),
    Sort.EMAIL: ("host", "port", "security", "username", "password", "sender", "to"),
    Sort.PAGERDUTY: ("url", "secret"),
    Sort.OPSGENIE: ("url", "secret"),
    Sort.TEAMS: ("url",),
}
# The address that a new receiver begins with, and what its key is called; such a key is needed.
SERVICES = {
    Sort.PAGERDUTY: ("https://events.pagerduty.com/v2/enqueue", "Routing key"),
    Sort.OPSGENIE: ("https://api.opsgenie.com", "API key"),
}
CHOICE_FIELDS = (
    "unplanned", "severities", "stages", "causes", "phases", "kinds", "clusters", "namespaces",
    "leases",
)  # fmt: skip
MAX_GROUP_SECONDS = 3600
MAX_PORT = 65_535
MAX_ADDRESS = 300  # characters
_SECRETS = ("url", "secret", "password")
_STAGES = (Stage.OPENED, Stage.WORSENED, Stage.OVER)
_PHASES = (Phase.EXPIRED, Phase.VACANT, Phase.HELD)
KEEP = "Stored, and not shown. Leave it empty to keep it."


class ReceiverForm(PlainForm):
    """`receiver`: the one that is changed; None makes a new one."""

    name = forms.CharField(label="Name", max_length=100, widget=TextLine())
    url = forms.CharField(label="Address", max_length=2000, widget=TextLine(mono=True))
    secret = forms.CharField(label="Key", required=False, max_length=500, widget=Hidden())
    host = forms.CharField(label="Mail server", max_length=253, widget=TextLine(mono=True))
    port = forms.IntegerField(
        label="Port",
        min_value=1,
        max_value=MAX_PORT,
        initial=587,
        widget=WholeNumber(),
        error_messages=dict.fromkeys(
            ("invalid", "min_value", "max_value"), f"Write a number from 1 to {MAX_PORT}."
        ),
    )
    security = forms.ChoiceField(
        label="Encryption",
        choices=[("starttls", "STARTTLS"), ("tls", "TLS"), ("none", "none")],
        widget=Dropdown(),
    )
    username = forms.CharField(
        label="User name", required=False, max_length=300, widget=TextLine(mono=True)
    )
    password = forms.CharField(label="Password", required=False, max_length=500, widget=Hidden())
    sender = forms.EmailField(label="From", widget=TextLine(mono=True))
    to = Names(label="To", most=50, help_text="Addresses, with commas between them.")
    unplanned = forms.BooleanField(
        label="Only what was unplanned",
        required=False,
        initial=True,
        help_text="And what was planned, if a Lease had no holder for longer than its duration.",
    )
    severities = Some([(one.value, one.value) for one in Gravity], label="Severity")
    stages = Some([(one.value, one.value) for one in _STAGES], label="Stages")
    causes = Some([(one.value, CAUSE_WORDS[one]) for one in Cause], label="Causes")
    phases = Some([(one.value, one.value) for one in _PHASES], label="Phases after the change")
    kinds = Some([(one.value, one.value) for one in Kind], label="Kinds of Leases")
    clusters = Some((), label="Clusters")
    namespaces = Names(label="Namespaces", help_text="Empty: all.")
    leases = Names(label="Leases", help_text="Patterns: kube-system/* or *-controller. Empty: all.")
    group_seconds = forms.IntegerField(
        label="Group within",
        min_value=0,
        max_value=MAX_GROUP_SECONDS,
        initial=10,
        widget=WholeNumber(unit="seconds"),
        help_text="Send what comes within this time together. 0: each message by itself, at once.",
        error_messages=dict.fromkeys(
            ("invalid", "min_value", "max_value"),
            f"Write whole seconds from 0 to {MAX_GROUP_SECONDS}.",
        ),
    )
    enabled = forms.BooleanField(label="Send messages", required=False, initial=True)

    def __init__(
        self,
        data: Any,
        *,
        sort: Sort,
        clusters: Iterable[str],
        receiver: Receiver | None = None,
    ) -> None:
        self._known = _target_of(receiver)
        initial = {} if receiver is None else _initial(receiver, self._known)
        super().__init__(data, initial=initial)
        self.sort, self._receiver = sort, receiver
        for name in {name for names in TARGET_FIELDS.values() for name in names}:
            if name not in TARGET_FIELDS[sort]:
                del self.fields[name]
        chosen = initial.get("clusters", ())
        names = dict.fromkeys([*clusters, *chosen])
        self.fields["clusters"].choices = [(one, one) for one in names]  # type: ignore[attr-defined]
        self._explain()

    def _explain(self) -> None:
        if (secret := self.fields.get("secret")) is not None:
            signs = self.sort is Sort.WEBHOOK
            secret.label = "Key that signs" if signs else "Bearer token"
            secret.help_text = "Optional."
        if self.sort in SERVICES and secret is not None:
            self.fields["url"].initial, secret.label = SERVICES[self.sort]
            secret.help_text, secret.required = "", True
        if self._known is None:
            return
        for name in _SECRETS:
            if name in self.fields and getattr(self._known, name):
                self.fields[name].help_text = KEEP
                self.fields[name].required = False

    @property
    def target_fields(self) -> list[forms.BoundField]:
        return [self[name] for name in TARGET_FIELDS[self.sort]]

    @property
    def choice_fields(self) -> list[forms.BoundField]:
        return [self[name] for name in CHOICE_FIELDS]

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        others = Receiver.objects.filter(name=name)
        if self._receiver is not None:
            others = others.exclude(pk=self._receiver.pk)
        if others.exists():
            raise forms.ValidationError("There is a receiver of this name. Choose another.")
        return name

    def clean_url(self) -> str:
        url: str = self.cleaned_data["url"]
        if not url:
            return url
        try:
            parts = urlsplit(url)
            usable = (
                parts.scheme in ("http", "https") and bool(parts.hostname) and url.isprintable()
            )
            _ = parts.port
        except ValueError:
            usable = False
        if not usable or " " in url:
            raise forms.ValidationError(
                "Write a whole address that begins with https:// or http://."
            )
        if parts.username is not None:
            raise forms.ValidationError("Leave the user name and the password out of the address.")
        return url

    def clean_to(self) -> tuple[str, ...]:
        to: tuple[str, ...] = self.cleaned_data["to"]
        if not to:
            raise forms.ValidationError("Write at least one address.")
        for one in to:
            try:
                validate_email(one)
            except forms.ValidationError:
                raise forms.ValidationError(f"{one[:80]} is no e-mail address.") from None
        return to

    def save(self, *, who: str, now: datetime, address: str) -> Receiver:
        """Store a valid form. Returns the receiver. `address` is how the admin came here."""
        given, target = self.cleaned_data, self._target()
        choice = {name: given[name] for name in CHOICE_FIELDS}
        receiver = self._receiver or Receiver(sort=self.sort.value, created_at=now)
        receiver.name, receiver.changed_by = given["name"], who
        receiver.address = address if len(address) <= MAX_ADDRESS else ""
        receiver.sealed, receiver.shown = seal(target), _shown(target)
        receiver.choice = msgspec.json.encode(msgspec.convert(choice, Choice)).decode()
        receiver.group_seconds, receiver.enabled = given["group_seconds"], given["enabled"]
        receiver.failures, receiver.retry_at, receiver.last_error = 0, None, ""
        if target != self._known:  # nothing was sent there yet
            receiver.last_sent_at = None
        receiver.save()
        if receiver.address:
            note_address(receiver.address)
        if not receiver.enabled:
            drop_waiting(receiver.pk, now)
        return receiver

    def _target(self) -> Target:
        """What is left empty stays; but a secret is not sent to a new place."""
        given = {name: self.cleaned_data[name] for name in TARGET_FIELDS[self.sort]}
        new = msgspec.convert(given, Target)
        known = self._known
        if known is None:
            return new
        if self.sort is not Sort.EMAIL:
            if new.url and new.url != known.url:
                return new
            return msgspec.structs.replace(new, url=known.url, secret=new.secret or known.secret)
        same = _place(new) == _place(known)
        kept = known.password if same else ""
        return msgspec.structs.replace(new, password=new.password or kept)


def _place(target: Target) -> tuple[str, int, Security, str]:
    return target.host, target.port, target.security, target.username


def _target_of(receiver: Receiver | None) -> Target | None:
    if receiver is None:
        return None
    try:
        return unseal(receiver.sealed)
    except CannotUnseal:
        return None


def _initial(receiver: Receiver, target: Target | None) -> dict[str, Any]:
    """What the form shows of a stored receiver: no secret."""
    choice = msgspec.json.decode(receiver.choice, type=Choice)
    shown = {} if target is None else asdict(target)
    for name in _SECRETS:
        shown.pop(name, None)
    return {
        **shown,
        **asdict(choice),
        "name": receiver.name,
        "group_seconds": receiver.group_seconds,
        "enabled": receiver.enabled,
    }


def _shown(target: Target) -> str:
    """The part of a target that is no secret."""
    if target.url:
        parts = urlsplit(target.url)
        return f"{parts.scheme}://{parts.netloc}"[:300]
    return f"{', '.join(target.to)}"[:300]


FORM_METHODS = ["GET", "HEAD", "POST"]
MAX_RECEIVERS = 100


@require_safe
@receivers_required
def notifications(request: HttpRequest) -> HttpResponseBase:
    waiting: dict[int, int] = {}
    rows = Notification.objects.filter(state=Notification.WAITING)
    for number in rows.values_list("receiver", flat=True):
        waiting[number] = waiting.get(number, 0) + 1
    receivers = list(Receiver.objects.order_by("name"))
    now = clock.now()
    found = [
        {
            "receiver": one,
            "sort": SORT_WORDS[Sort(one.sort)],
            "waiting": waiting.get(one.pk, 0),
            "attempt": at_or_now(one.retry_at, now) if one.retry_at else "",
        }
        for one in receivers
    ]
    context = {
        "receivers": found,
        "sorts": list(SORT_WORDS.items()),
        "link_base": settings.LEASEBOARD.url,
        "address": address_of_pages(),
    }
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
        made = _save(request, form)
        _record(request, SecurityEvent.RECEIVER_CREATED, made)
        messages.success(request, f"The receiver {made.name!r} is made. Send it a test.")
        return redirect("notifications")
    return _render(request, form, sort, {}, status=422 if form.errors else 200)


@require_http_methods(FORM_METHODS)
@receivers_required
def receiver(request: HttpRequest, number: int) -> HttpResponseBase:
    """Change a receiver."""
    one = row_of(Receiver.objects.all(), number)
    sort = Sort(one.sort)
    form = _form(request, sort, one)
    if form.is_valid():
        _save(request, form)
        _record(request, SecurityEvent.RECEIVER_CHANGED, one)
        messages.success(request, f"The receiver {one.name!r} is changed.")
        return redirect("notifications")
    return _render(request, form, sort, {"receiver": one}, status=422 if form.errors else 200)


@require_POST
@receivers_required
def test_receiver(request: HttpRequest, number: int) -> HttpResponseBase:
    """Queue a test message; the log shows what became of it."""
    one, now = row_of(Receiver.objects.all(), number), clock.now()
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
    messages.success(request, f"The newest test below says how it reached {one.name!r}.")
    return redirect(f"{request.path.rpartition('receivers/')[0]}log/?receiver={one.pk}")


class Receivers(MadeByPeople[Receiver, ReceiverForm]):
    """Each is made and changed on a page of its own."""

    model, route, called = Receiver, "notifications", "receiver"
    templates = ("notifications/index.html", "notifications/delete.html")
    guard = staticmethod(receivers_required)
    revoked = SecurityEvent.RECEIVER_DELETED

    def about(self, row: Receiver) -> str:
        return f"receiver {row.name}: {SORT_WORDS[Sort(row.sort)]} to {row.shown}"

    def end(self, row: Receiver) -> tuple[bool, str]:
        row.delete()
        return True, f"The receiver {row.name!r} is deleted."


_, delete_receiver = Receivers.views()


def _record(request: HttpRequest, event: SecurityEvent, one: Receiver) -> None:
    record_by(request, event, Receivers(request).about(one))


def _save(request: HttpRequest, form: ReceiverForm) -> Receiver:
    address = request.build_absolute_uri("/").rstrip("/")
    return form.save(who=request.user.get_username(), now=clock.now(), address=address)


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
