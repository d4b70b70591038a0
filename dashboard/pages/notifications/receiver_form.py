"""The form of a receiver: where messages go, and which ones. Stored secrets are never drawn."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

import msgspec
from django import forms
from django.core.validators import validate_email
from msgspec.structs import asdict

from dashboard.access.sealing import CannotUnseal, seal, unseal
from dashboard.forms.plain_form import Hidden, Names, PlainForm, Some
from dashboard.forms.widgets import Dropdown, TextLine, WholeNumber
from dashboard.parts.cause_words import CAUSE_WORDS
from leases.domain.cause.incident import Cause
from leases.domain.kind import Kind
from leases.domain.notify.choice import Choice
from leases.domain.notify.message import Stage
from leases.domain.notify.target import Security, Sort, Target
from leases.domain.phase import Phase
from leases.history.notify.delivery_log import drop_waiting
from leases.models import Receiver

SORT_WORDS = {
    Sort.WEBHOOK: "Webhook", Sort.SLACK: "Slack", Sort.ALERTMANAGER: "Alertmanager",
    Sort.EMAIL: "E-mail",
}  # fmt: skip
TARGET_FIELDS = {
    Sort.WEBHOOK: ("url", "secret"),
    Sort.SLACK: ("url",),
    Sort.ALERTMANAGER: ("url", "secret"),
    Sort.EMAIL: ("host", "port", "security", "username", "password", "sender", "to"),
}
CHOICE_FIELDS = ("stages", "causes", "phases", "kinds", "clusters", "namespaces", "leases")
MAX_GROUP_SECONDS = 3600
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
        label="Port", min_value=1, max_value=65_535, initial=587, widget=WholeNumber()
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
    stages = Some([(one.value, one.value) for one in _STAGES], label="Stages")
    causes = Some([(one.value, CAUSE_WORDS[one]) for one in Cause], label="Causes")
    phases = Some([(one.value, one.value) for one in _PHASES], label="Phases that changes led to")
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

    def save(self, *, who: str, now: datetime) -> Receiver:
        """Store a valid form. Returns the receiver."""
        given, target = self.cleaned_data, self._target()
        choice = {name: given[name] for name in CHOICE_FIELDS}
        receiver = self._receiver or Receiver(sort=self.sort.value, created_at=now)
        receiver.name, receiver.changed_by = given["name"], who
        receiver.sealed, receiver.shown = seal(target), _shown(target)
        receiver.choice = msgspec.json.encode(msgspec.convert(choice, Choice)).decode()
        receiver.group_seconds, receiver.enabled = given["group_seconds"], given["enabled"]
        receiver.failures, receiver.retry_at, receiver.last_error = 0, None, ""
        if target != self._known:  # nothing was sent there yet
            receiver.last_sent_at = None
        receiver.save()
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
