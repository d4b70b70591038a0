"""Attempts to sign in."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client

from dashboard.access.sign_in_limits import SLOWED

RIGHT, WRONG = "right horse", "wrong-horse-battery"


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    SLOWED._until.clear()
    yield
    SLOWED._until.clear()


@pytest.fixture
def ada(board: object) -> User:
    return User.objects.create_superuser("ada", password=RIGHT)


def sign_in(
    name: str, password: str, address: str = "192.0.2.1", client: Client | None = None
) -> HttpResponse:
    return (client or Client()).post(
        "/sign-in/", {"username": name, "password": password}, REMOTE_ADDR=address
    )
