"""What browsers are told to remember about https, and for how long."""

from __future__ import annotations

import urllib.request

import pytest

from tests.support.processes import manage, serving

HTTPS = {"LEASEBOARD_HTTPS": "true"}
YEAR = {
    "LEASEBOARD_HSTS_SECONDS": "31536000",
    "LEASEBOARD_HSTS_SUBDOMAINS": "true",
    "LEASEBOARD_HSTS_PRELOAD": "true",
}


def test_a_browser_remembers_what_the_settings_say(tmp_path):
    with serving(tmp_path / "data", "--no-demo", **HTTPS, **YEAR) as server:
        request = urllib.request.Request(
            f"{server.url}/sign-in/", headers={"X-Forwarded-Proto": "https"}
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            sent = answer.headers["Strict-Transport-Security"]
    assert sent == "max-age=31536000; includeSubDomains; preload"


@pytest.mark.parametrize(("settings", "seconds"), [(HTTPS, "3600"), (YEAR, "0")])
def test_it_is_an_hour_with_https_and_nothing_without(tmp_path, settings, seconds):
    told = "from django.conf import settings; print(settings.SECURE_HSTS_SECONDS)"
    done = manage(tmp_path / "data", "shell", "--no-imports", "-c", told, **settings)
    assert (done.returncode, done.stdout) == (0, f"{seconds}\n"), done.stderr


def test_the_check_of_a_deployment_accepts_the_mild_default(tmp_path):
    done = manage(tmp_path / "data", "check", "--deploy", "--fail-level", "WARNING", **HTTPS)
    assert (done.returncode, done.stdout) == (
        0, "System check identified no issues (2 silenced).\n",
    ), done.stderr  # fmt: skip
