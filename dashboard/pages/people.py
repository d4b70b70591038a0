"""Who has an account: add somebody, give a role, reset a password, end sessions, deactivate."""

from collections import Counter
from collections.abc import Iterable
from typing import Any, cast

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.models import User
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache

from dashboard.access import accounts
from dashboard.access.accounts import Admin, end_sessions, open_sessions
from dashboard.access.guards import right_required
from dashboard.access.roles import MANAGE_PEOPLE, ROLES, LastAdmin, grantable_groups, may_manage
from dashboard.access.security_log import full_address
from dashboard.forms.admin_form import PlainForm
from dashboard.forms.fields import Dropdown, TextLine
from dashboard.forms.make_and_revoke import MadeByPeople, reads_and_writes, row_of
from dashboard.parts.formatting import counted

NOT_YOURS = "This is no role that you can give. Choose one of the list."


class NewPersonForm(PlainForm):
    """The name and the role of somebody new."""

    username = forms.CharField(
        label="Name",
        max_length=150,
        widget=TextLine(),
        help_text="To sign in with. You get a sign-in link to hand over.",
        validators=[UnicodeUsernameValidator()],
        error_messages={"required": "Write the name to sign in with."},
    )
    role = forms.ChoiceField(
        label="Role",
        widget=Dropdown(),
        help_text="operator reads everything; admin also edits Leases and manages people.",
        error_messages={
            "required": "Choose a role: without one this person sees nothing.",
            "invalid_choice": NOT_YOURS,
        },
    )

    def __init__(self, *args: Any, roles: Iterable[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["role"].choices = [(name, name) for name in roles]  # type: ignore[attr-defined]

    def clean_username(self) -> str:
        name: str = User.normalize_username(self.cleaned_data["username"])
        if User.objects.filter(username__iexact=name).exists():
            raise forms.ValidationError("There is a person of this name already; choose another.")
        return name


PER_PAGE = 100


class BadAction(ValueError):
    """The form asks for what cannot be done; the text says why."""


manager_required = right_required(MANAGE_PEOPLE, "manage people")


class People(MadeByPeople[User, NewPersonForm]):
    """Everybody who has an account; `accounts` records what becomes of one."""

    model, route, templates = User, "people", ("people/index.html",)
    guard = staticmethod(manager_required)

    def form(self, data: Any) -> NewPersonForm:
        return NewPersonForm(data, roles=_roles(self.request), initial={"role": "operator"})

    def make(self, form: NewPersonForm) -> tuple[None, dict[str, Any]]:
        user, token = accounts.add_person(
            form.cleaned_data["username"], form.cleaned_data["role"], _admin(self.request)
        )
        return None, {"added": user, "link": _link(self.request, token)}

    def listed(self) -> dict[str, Any]:
        everybody = User.objects.select_related("person").prefetch_related("groups")
        pages = Paginator(everybody.order_by("-is_active", "username"), PER_PAGE)
        page = pages.get_page(self.request.GET.get("page"))
        sessions = Counter(one.user_id for one in open_sessions())
        rows = [{"person": user, **_shown(user), "sessions": sessions[user.pk]} for user in page]
        return {"rows": rows, "page": page}


people, _ = People.views()


@never_cache
@reads_and_writes
@manager_required
def person(request: HttpRequest, number: int) -> HttpResponseBase:
    """One person. POST does what its `action` names."""
    user = row_of(User.objects.select_related("person"), number)
    manageable = may_manage(cast("User", request.user), user)
    if request.method != "POST":
        return _page_of(request, user, manageable)
    if not manageable:
        raise PermissionDenied(f"{user} may do more than you: a superuser manages this account.")
    problem, link = "", ""
    try:
        link = _act(request, user)
    except (LastAdmin, BadAction) as error:
        problem = str(error)
        user.refresh_from_db()
    if problem or link:
        return _page_of(request, user, manageable, problem=problem, link=link)
    return redirect("person", number=user.pk)


def _act(request: HttpRequest, user: User) -> str:
    """Returns the address of a sign-in link that was made. Raises LastAdmin, BadAction."""
    by, action = _admin(request), request.POST.get("action")
    if action == "role":
        said = _give_role(request, user, by)
    elif action == "deactivate":
        accounts.deactivate(user, by)
        said = f"{user} is deactivated. All sessions have ended."
    elif action == "activate":
        accounts.activate(user, by)
        said = f"{user} may sign in again."
    elif action == "reset":
        return _link(request, accounts.reset_password(user, by))
    elif action == "proxy":
        accounts.open_for_proxy(user, by)
        said = f"The proxy signs {user} in from now on."
    elif action == "end":
        ended = end_sessions(user, request.POST.get("session") or None)
        said = f"{counted(ended, 'session')} of {user} ended."
    else:
        raise BadAction("Choose what to do by one of the buttons.")
    messages.success(request, said)
    return ""


def _give_role(request: HttpRequest, user: User, by: Admin) -> str:
    role = request.POST.get("role", "")
    if role not in ("", *_roles(request)) or not _shown(user)["may_get_role"]:
        raise BadAction(NOT_YOURS)
    accounts.set_role(user, role, by)
    return f"{user} has {f'the role {role}' if role else 'no role'} now."


def _page_of(
    request: HttpRequest, user: User, manageable: bool, *, problem: str = "", link: str = ""
) -> HttpResponse:
    own = request.session.session_key
    context = {
        "person": user,
        **_shown(user),
        "manageable": manageable,
        "sessions": [one for one in open_sessions(own) if manageable and one.user_id == user.pk],
        "roles": _roles(request),
        "proxy_is_set": bool(settings.LEASEBOARD.proxy_addresses),
        "problem": problem,
        "link": link,
    }
    return render(request, "people/person.html", context, status=400 if problem else 200)


def _shown(user: User) -> dict[str, Any]:
    """The facts about an account on both pages, and whether its role is given here."""
    groups = sorted(group.name for group in user.groups.all())
    known = getattr(user, "person", None)
    by_proxy = known is not None and known.by_proxy
    by_groups = by_proxy and bool(settings.LEASEBOARD.proxy_roles)
    return {
        "role_name": next((role for role in ("admin", "operator") if role in groups), ""),
        "groups": [name for name in groups if name not in ROLES],
        "by_proxy": by_proxy,
        "may_get_role": not user.is_superuser and not by_groups,
        "last_seen": (known is not None and known.last_seen_at) or user.last_login,
    }


def _roles(request: HttpRequest) -> list[str]:
    """Those of the two roles that this admin may give."""
    mine = grantable_groups(cast("User", request.user)).filter(name__in=ROLES)
    return sorted(mine.values_list("name", flat=True), reverse=True)


def _admin(request: HttpRequest) -> Admin:
    return Admin(request.user.get_username(), full_address(request.META.get("REMOTE_ADDR")))


def _link(request: HttpRequest, token: str) -> str:
    return request.build_absolute_uri(reverse("sign_in_by_link", args=[token]))
