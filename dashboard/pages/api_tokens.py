"""API tokens: a person makes and revokes own ones; an admin sees all."""

from typing import Any, cast

from django import forms
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import Http404, HttpResponseBase

from dashboard import clock
from dashboard.access import api_tokens
from dashboard.access.guards import person_required
from dashboard.access.roles import API_TOKENS
from dashboard.access.security_log import SecurityEvent
from dashboard.board import running_board
from dashboard.forms.admin_form import PlainForm
from dashboard.forms.fields import EndField
from dashboard.forms.make_and_revoke import MadeByPeople, name_field
from leases.models import ApiToken

ROLE_WORDS = {
    "operator": "operator: reads Leases, history, incidents and the audit trail",
    "admin": "admin: also reads the security log",
}


class ApiTokenForm(PlainForm):
    """What the token is for, what it may read, and when it ends."""

    name = name_field("token", "The job or the script that uses it.")
    role = forms.ChoiceField(
        label="Role",
        widget=forms.RadioSelect,
        help_text="The token never reads more than you may.",
        error_messages={"invalid_choice": "You cannot give this role. Choose one of the list."},
    )
    days = EndField(
        label="Expires",
        most_days=api_tokens.MAX_DAYS,
        initial="90 d",
        help_text=f"After so many days ({api_tokens.MAX_DAYS:,} at most), a length, or at a time.",
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


MAX_SHOWN = 500
# Why a token opens nothing for now, though it was not revoked and did not expire.
_REASONS = {
    api_tokens.INACTIVE: "not now: account deactivated",
    api_tokens.MAY_NOT_READ: "not now: person has no role",
}


class ApiTokens(MadeByPeople[ApiToken, ApiTokenForm]):
    """Tokens of programs: everybody sees the own ones, an admin all."""

    model, route, called = ApiToken, "api_tokens", "token"
    templates = ("api_tokens/index.html", "api_tokens/revoke.html")
    guard = staticmethod(person_required("API tokens"))
    made, revoked = SecurityEvent.TOKEN_CREATED, SecurityEvent.TOKEN_REVOKED

    def form(self, data: Any) -> ApiTokenForm:
        return ApiTokenForm(data, user=cast("User", self.request.user))

    def make(self, form: ApiTokenForm) -> tuple[ApiToken, dict[str, Any]]:
        given = form.cleaned_data
        token, text = api_tokens.create(
            name=given["name"],
            user=form.user,
            role=given["role"],
            now=clock.now(),
            expires_at=given["days"],
        )
        address = self.request.build_absolute_uri("/").rstrip("/")
        return token, {"made": token, "text": text, "address": address}

    def about(self, row: ApiToken) -> str:
        return f"API token {row.name} of {row.user.get_username()}, role {row.role}"

    def rows(self) -> QuerySet[ApiToken]:
        user, found = cast("User", self.request.user), ApiToken.objects.select_related("user")
        return found if user.has_perm(API_TOKENS) else found.filter(user_id=user.pk)

    def missing(self) -> HttpResponseBase:
        raise Http404("You have no such API token.")

    def end(self, row: ApiToken) -> tuple[bool, str]:
        was_open = api_tokens.revoke(row.pk, now=clock.now())
        running_board().rights.look_now()
        return was_open, f"The API token {row.name!r} opens nothing any more."

    def listed(self) -> dict[str, Any]:
        """The newest, those that open something first."""
        now = clock.now()
        shown = self.rows().order_by("-created_at", "-pk")[:MAX_SHOWN]
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
        items.sort(key=lambda item: not item["open"])
        return {"items": items, "all": self.request.user.has_perm(API_TOKENS)}


tokens, revoke_token = ApiTokens.views()
