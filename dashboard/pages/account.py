"""Sign in by password or one-time link; choose or change the own password, and the time zone."""

from __future__ import annotations

from typing import cast

from django.contrib import messages
from django.contrib.auth import login, update_session_auth_hash
from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm, SetPasswordForm
from django.contrib.auth.models import User
from django.contrib.auth.views import LoginView, redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from dashboard import clock
from dashboard.access.accounts import keep_own_pages, note_origin
from dashboard.access.guards import person_required
from dashboard.access.security_log import SecurityEvent, full_address, record
from dashboard.access.sign_in_limits import remember_browser
from dashboard.access.sign_in_links import LinkError, find_user, redeem
from dashboard.forms.admin_form import PlainForm
from dashboard.forms.fields import ZoneField
from dashboard.lists.url_parameters import for_input
from dashboard.parts.page_context import zone_of
from leases.models import Person

TEMPLATE = "registration/sign_in.html"


class SignInView(LoginView):
    """The form. `dashboard.access.sign_in_limits` slows down guessing."""

    template_name = TEMPLATE
    redirect_authenticated_user = True

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        answer = super().form_valid(form)
        note_origin(self.request)
        remember_browser(answer, form.get_user().get_username())
        return answer


@never_cache
@require_safe
def by_link(request: HttpRequest, token: str) -> HttpResponse:
    """Show a button, because programs that fetch links do not press buttons."""
    try:
        user = find_user(token, now=clock.now())
    except LinkError as error:
        return _refuse(request, error)
    answer = render(request, TEMPLATE, {"link_user": user, "token": token})
    # The path contains the token: no request of this page may put it into a proxy's log.
    answer["Referrer-Policy"] = "strict-origin"
    return answer


@never_cache
@require_POST
def redeem_link(request: HttpRequest) -> HttpResponse:
    """Sign in and use the link up. The token is in the body, which is not logged."""
    try:
        user = redeem(request.POST.get("token", ""), now=clock.now())
    except LinkError as error:
        return _refuse(request, error)
    login(request, user, backend="django.contrib.auth.backends.ModelBackend")
    note_origin(request)
    answer = redirect("home" if user.has_usable_password() else "own_password")
    remember_browser(answer, user.get_username())
    return answer


def _refuse(request: HttpRequest, error: LinkError) -> HttpResponse:
    """Answer 410 with the reason and the form."""
    context = {"link_error": str(error), "next": reverse("home")}
    return render(request, TEMPLATE, context, status=410)


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


class ZoneForm(PlainForm):
    zone = ZoneField(help_text="You read and type times in this zone. Links keep their moment.")


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@person_required("Time zones")
def time_zone(request: HttpRequest) -> HttpResponse:
    """Choose the zone in which pages show times, and go back to the page of `next`."""
    posted = request.method == "POST"
    form = ZoneForm(request.POST if posted else None, initial={"zone": zone_of(request)})
    if posted and form.is_valid():
        person = cast("User", request.user)
        chosen = {"zone": form.cleaned_data["zone"]}
        Person.objects.update_or_create(user_id=person.pk, defaults=chosen)
        back = request.POST.get("next", "")
        safe = url_has_allowed_host_and_scheme(back, {request.get_host()}, request.is_secure())
        return HttpResponseRedirect(back if safe else reverse("home"))
    back = request.POST.get("next") or request.GET.get("next", "")
    context = {"form": form, "next": for_input(back)}
    return render(request, "people/time_zone.html", context, status=400 if posted else 200)
