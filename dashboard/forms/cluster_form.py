"""The form of a cluster that an admin adds, and the checks before it is kept."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

from asgiref.sync import async_to_sync
from django import forms
from django.conf import settings

from dashboard import clock
from dashboard.access.kept_secrets import PASTED, CannotUnseal, seal_text, unseal_text
from dashboard.board import running_board
from dashboard.config import ClusterSpec, Config, read_labels
from dashboard.forms.admin_form import Names, PlainForm
from dashboard.forms.fields import Area, Dropdown, TextLine
from dashboard.log_lines import forget, hide
from dashboard.parts.cluster_diagnosis import Finding, Level, examine_cluster
from dashboard.parts.formatting import capitalized
from leases.kube import given_kubeconfig
from leases.kube.cluster_source import ClusterSource, Kubeconfig, SourceKind
from leases.kube.given_kubeconfig import NAME, contexts_in, credentials_in, read_given, server_of
from leases.models import AddedCluster

MAX_KUBECONFIG = 256 * 1024  # characters
KEPT_SECONDS = 600  # for which a kubeconfig waits for the choice of its context
CHECK_SECONDS = 5.0  # for each answer
CHECKS_SECONDS = 30.0  # for all of them
LISTEN_SECONDS = 0.5
TOO_LARGE = (
    "A kubeconfig has 256 KiB at most. kubectl config view --minify --flatten --raw writes one "
    "with the current context alone."
)
PASTE_AGAIN = "Paste the kubeconfig again, or choose its file again: no page shows it once more."
SEVERAL = (
    "This kubeconfig has several contexts. Choose that of the cluster; there is no need to paste "
    "it again."
)
OVER = "The kubeconfig is not kept for longer than 10 minutes. Paste it again."
# What the doctor says of a cluster of settings is another thing here.
INSTEAD = {"sign-in": "Paste a kubeconfig with a token or a certificate that it accepts."}
SLOW = Finding(
    check="reach",
    level=Level.PROBLEM,
    found=f"The checks of this cluster took longer than {CHECKS_SECONDS:g} s.",
    do="Look at the network and at the load of its API server, then try again.",
)


class HiddenArea(Area):
    """Several lines of a secret: what was typed is never drawn again."""

    def format_value(self, value: Any) -> str:
        return ""


class ClusterForm(PlainForm):
    """The name of a cluster, its labels, and one context of a kubeconfig.

    `row`: the one that is changed; None adds one.
    """

    name = forms.CharField(
        label="Name",
        max_length=32,
        widget=TextLine(mono=True, spellcheck="false"),
        help_text="1 to 32 of a-z, 0-9 and -. Addresses and history have it, so it stays.",
    )
    labels = Names(
        label="Labels",
        most=20,
        help_text="Such as env=prod, region=eu: all clusters are grouped and filtered by them.",
    )
    kubeconfig = forms.CharField(
        label="Kubeconfig",
        required=False,
        max_length=MAX_KUBECONFIG,
        widget=HiddenArea(mono=True, rows=9, spellcheck="false", autocomplete="off"),
        error_messages={"max_length": TOO_LARGE},
    )
    upload = forms.FileField(
        label="Or its file",
        required=False,
        allow_empty_file=True,
        widget=forms.FileInput({"class": "input"}),
    )
    context = forms.CharField(label="Context", required=False, max_length=1000, widget=TextLine())
    pasted = forms.CharField(required=False, widget=forms.HiddenInput)

    def __init__(self, *given: Any, row: AddedCluster | None = None) -> None:
        initial = {} if row is None else {"labels": _written(row.labels)}
        super().__init__(*given, initial=initial)
        self.row = row
        self.asks_context = False
        self.config: given_kubeconfig.Config | None = None
        keeps = "" if row is None else "Empty: the stored one stays. "
        self.fields["kubeconfig"].help_text = (
            f"{keeps}With a token or a client certificate in it; it may name no program and no "
            "file. It is stored encrypted and never shown again."
        )
        if row is not None:
            del self.fields["name"]

    @property
    def was_given(self) -> bool:
        """Whether a kubeconfig came with the form, which no page draws again."""
        return any(self.data.get(name) for name in ("kubeconfig", "pasted")) or bool(self.files)

    @property
    def cluster(self) -> str:
        return str(self.row.name if self.row else self.cleaned_data["name"])

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if not NAME.fullmatch(name):
            raise forms.ValidationError(
                "Write 1 to 32 of a-z, 0-9 and -, which is not at either end."
            )
        taken = AddedCluster.objects.filter(name=name).first()
        if taken is not None and taken.removed_at is not None:
            raise forms.ValidationError(
                "The history of an earlier cluster of this name is being deleted. Try again later."
            )
        if taken is not None or name in running_board().clusters:
            raise forms.ValidationError("There is a cluster of this name. Choose another.")
        return name

    def clean_labels(self) -> dict[str, str]:
        try:
            found = read_labels(",".join(f"x:{one}" for one in self.cleaned_data["labels"]))
        except ValueError as error:
            said = str(error).replace("NAME:LABEL=VALUE", "LABEL=VALUE").replace("prod:", "")
            raise forms.ValidationError(f"{capitalized(said.replace('x:', ''))}.") from None
        return {one.key: one.value for one in found}

    def clean_upload(self) -> str:
        file = self.cleaned_data["upload"]
        if file is None:
            return ""
        if file.size > MAX_KUBECONFIG:
            raise forms.ValidationError(TOO_LARGE)
        try:
            return str(file.read().decode())
        except UnicodeDecodeError:
            raise forms.ValidationError("This file is no text. Choose a kubeconfig.") from None

    def clean_pasted(self) -> str:
        pasted: str = self.cleaned_data["pasted"]
        if not pasted:
            return ""
        try:
            return unseal_text(pasted, PASTED, within=KEPT_SECONDS)
        except CannotUnseal:
            self.add_error("kubeconfig", OVER)  # the field that people see
            return ""

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or self.cleaned_data
        text = data.get("upload") or data.get("kubeconfig") or data.get("pasted") or ""
        if text.strip():
            self._read(text, data.get("context", ""))
        elif self.row is None and not self.errors.keys() & {"upload", "kubeconfig", "pasted"}:
            self.add_error("kubeconfig", "Paste a kubeconfig, or choose its file.")
        return data

    def _read(self, text: str, context: str) -> None:
        try:
            names = contexts_in(text)
            if context not in names and (context or len(names) > 1):
                self._ask_context(names, text)
                return
            self.config = read_given(text, into="the kubeconfig", context=context or names[0])
        except ValueError as error:
            self.add_error("kubeconfig", f"This kubeconfig cannot be used: {error}.")

    def _ask_context(self, names: Iterable[str], text: str) -> None:
        """Draw the form with a choice; the kubeconfig goes with it, encrypted."""
        self.asks_context = True
        widget = Dropdown()
        widget.choices = [("", "Choose"), *((name, name) for name in names)]
        self.fields["context"].widget = widget
        self.data = {**self.data.dict(), "pasted": seal_text(text, PASTED)}  # type: ignore[attr-defined]
        self.add_error("context", SEVERAL)

    def check_cluster(self) -> list[str]:
        """Ask the cluster, as doctor does. What forbids it is an error of the form; returns what
        does not."""
        if self.config is None:
            return []
        fresh = hide(*credentials_in(self.config))
        warnings = []
        for one in async_to_sync(_examine)(self.cluster, self.config):
            said = f"{one.found} {INSTEAD.get(one.check, one.do)}".strip()
            if one.level is Level.PROBLEM and one.check != "clock":
                self.add_error("kubeconfig", said)
            elif one.level is not Level.OK:
                warnings.append(said)
        if self.errors:
            forget(*fresh)
        return warnings


def _written(labels: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(f"{key}={value}" for key, value in labels.items())


async def _examine(name: str, config: given_kubeconfig.Config) -> list[Finding]:
    ours: Config = settings.LEASEBOARD
    held = Kubeconfig(config, ours.data / given_kubeconfig.FOLDER)
    spec = ClusterSpec(name, ClusterSource(SourceKind.ADDED, server_of(config), held=held))
    try:
        async with asyncio.timeout(CHECKS_SECONDS):
            return await examine_cluster(
                spec, ours, seconds=CHECK_SECONDS, now=clock.now, listen=LISTEN_SECONDS
            )
    except TimeoutError:
        return [SLOW]
