"""Sign in by name and password, or by the one-time link that `serve` prints."""

from __future__ import annotations

from django.contrib.auth import login
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from dashboard import clock
from dashboard.access.people.sessions import note_origin
from dashboard.access.sign_in.known_browsers import remember_browser
from dashboard.access.sign_in.links import LinkError, find_user, redeem

TEMPLATE = "registration/sign_in.html"


class SignInView(LoginView):
    """The form. `dashboard.access.sign_in.limits` slows down guessing."""

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
