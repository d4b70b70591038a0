"""One's own password: choose the first one, or change it."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.forms import PasswordChangeForm, SetPasswordForm
from django.contrib.auth.models import User
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from dashboard.access.people.own_password import keep_own_pages
from dashboard.access.security_log import SecurityEvent, record
from dashboard.access.sign_in.client_address import full_address


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def own_password(request: HttpRequest) -> HttpResponse:
    """A person without a password chooses one; others must give the old one."""
    if not request.user.is_authenticated:
        return redirect_to_login(request.get_full_path())
    user = request.user
    if hasattr(request, "by_proxy"):
        raise PermissionDenied("The proxy signs you in. Your password is changed there.")
    if not isinstance(user, User):
        raise PermissionDenied("A token has no password. Sign in to change yours.")
    kind = PasswordChangeForm if user.has_usable_password() else SetPasswordForm
    form = kind(user, request.POST or None)
    if request.method == "POST" and form.is_valid():
        return keep_own_pages(_save, request, form)
    context = {"form": form, "first": not user.has_usable_password()}
    status = 400 if request.method == "POST" else 200
    return render(request, "registration/own_password.html", context, status=status)


def _save(request: HttpRequest, form: SetPasswordForm[User]) -> HttpResponse:
    user = form.save()
    update_session_auth_hash(request, user)
    address = full_address(request.META.get("REMOTE_ADDR"))
    record(SecurityEvent.PASSWORD_CHANGED, who=user.get_username(), address=address)
    messages.success(request, "Your password is saved. All other browsers were signed out.")
    return redirect("home")
