"""API tokens: a person makes and revokes own ones; an admin sees all."""

from datetime import datetime, timedelta
from functools import partial
from typing import Any, cast

from django import forms
from django.contrib import messages
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from dashboard import clock
from dashboard.access import api_tokens
from dashboard.access.api_tokens import TokenPerson
from dashboard.access.guards import check_view
from dashboard.access.roles import API_TOKENS
from dashboard.access.security_log import SecurityEvent, record_by
from dashboard.board import running_board
from dashboard.forms.admin_form import PlainForm, list_and_make
from dashboard.forms.fields import TextLine, WholeNumber
from leases.models import ApiToken

ROLE_WORDS = {
    "operator": "operator: reads Leases, history, incidents and the audit trail",
    "admin": "admin: also reads the security log",
}


class ApiTokenForm(PlainForm):
    """What the token is for, what it may read, and for how many days."""

    name = forms.CharField(
        label="Name",
        max_length=100,
        widget=TextLine(),
        help_text="The job or the script that uses it.",
        error_messages={"required": "Write a name, so that you know the token again."},
    )
    role = forms.ChoiceField(
        label="Role",
        widget=forms.RadioSelect,
        help_text="The token never reads more than you may.",
        error_messages={"invalid_choice": "You cannot give this role. Choose one of the list."},
    )
    days = forms.IntegerField(
        label="Expires after",
        min_value=1,
        max_value=api_tokens.MAX_DAYS,
        initial=90,
        widget=WholeNumber(unit="days"),
        help_text=f"{api_tokens.MAX_DAYS:,} days at most.",
        error_messages={"required": "Write the number of days."},
    )

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user = user
        roles = api_tokens.roles_for(user)
        self.fields["role"].choices = [(role, ROLE_WORDS[role]) for role in roles]  # type: ignore[attr-defined]
        self.initial["role"] = "operator"

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if not name.isprintable():
            raise forms.ValidationError("A name is one line of printable characters.")
        if ApiToken.objects.filter(user=self.user, name=name, revoked_at=None).exists():
            raise forms.ValidationError("You have a token of this name already; choose another.")
        return name

    def save(self, *, now: datetime) -> tuple[ApiToken, str]:
        """Make the token of a valid form. Returns it with its text."""
        return api_tokens.create(
            name=self.cleaned_data["name"],
            user=self.user,
            role=self.cleaned_data["role"],
            now=now,
            expires_at=now + timedelta(days=self.cleaned_data["days"]),
        )


MAX_SHOWN = 500
MAX_NUMBER = 2**63 - 1  # of a row, in the database
# Why a token opens nothing for now, though it was not revoked and did not expire.
_REASONS = {
    api_tokens.INACTIVE: "not now: account deactivated",
    api_tokens.MAY_NOT_READ: "not now: person has no role",
}


def _check(request: HttpRequest) -> HttpResponseBase | None:
    refusal = check_view(request)
    if refusal is None and isinstance(request.user, TokenPerson):
        raise PermissionDenied("API tokens are managed by people: sign in.")
    return refusal


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def tokens(request: HttpRequest) -> HttpResponseBase:
    """List the tokens. POST makes one and shows its text only once."""
    refusal = _check(request)
    if refusal is not None:
        return refusal
    user = cast("User", request.user)

    def make(form: ApiTokenForm) -> dict[str, Any]:
        token, text = form.save(now=clock.now())
        _record(request, SecurityEvent.TOKEN_CREATED, token)
        address = request.build_absolute_uri("/").rstrip("/")
        return {"made": token, "text": text, "address": address}

    form = partial(ApiTokenForm, user=user)
    listed = partial(_presented, user, user.has_perm(API_TOKENS))
    return list_and_make(request, "api_tokens/index.html", form, make, listed)


@require_http_methods(["GET", "HEAD", "POST"])
def revoke_token(request: HttpRequest, number: int) -> HttpResponseBase:
    """Ask first; POST revokes the token."""
    refusal = _check(request)
    if refusal is not None:
        return refusal
    token = ApiToken.objects.select_related("user").filter(pk=min(number, MAX_NUMBER)).first()
    mine = token is not None and token.user == request.user
    if token is None or not (mine or request.user.has_perm(API_TOKENS)):
        raise Http404("You have no such API token.")
    if request.method != "POST":
        return render(request, "api_tokens/revoke.html", {"token": token})
    if api_tokens.revoke(token.pk, now=clock.now()):
        _record(request, SecurityEvent.TOKEN_REVOKED, token)
    running_board().rights.look_now()
    messages.success(request, f"The API token {token.name!r} opens nothing any more.")
    return redirect("api_tokens")


def _record(request: HttpRequest, event: SecurityEvent, token: ApiToken) -> None:
    owner = token.user.get_username()
    record_by(request, event, f"API token {token.name} of {owner}, role {token.role}")


def _presented(user: User, all_of_them: bool) -> dict[str, Any]:
    """The newest, those that open something first."""
    now = clock.now()
    found = ApiToken.objects.select_related("user").order_by("-created_at", "-pk")
    shown = (found if all_of_them else found.filter(user=user))[:MAX_SHOWN]
    people: dict[int, User] = {}  # each person's rights are read once
    for token in shown:
        token.user = people.setdefault(token.user_id, token.user)
    items = [
        {
            "token": token,
            "open": token.revoked_at is None and now < token.expires_at,
            "closed": _REASONS.get(api_tokens.why_closed(token, now=now) or ""),
            "less": token.role not in ("operator", *api_tokens.roles_for(token.user)),
        }
        for token in shown
    ]
    return {"items": sorted(items, key=lambda item: not item["open"]), "all": all_of_them}
