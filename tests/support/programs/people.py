"""People with a session and wall links, made by another process than the server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.support.processes import manage

# Makes what a JSON list asks for, and prints what a test must know of it.
SCRIPT = """
import json
from datetime import timedelta
from importlib import import_module
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.contrib.auth.models import Group, Permission, User
from django.utils import timezone
from dashboard.access import api_tokens
from dashboard.access import links as wall_links

read = Permission.objects.get(codename="view_change")
store = import_module(settings.SESSION_ENGINE).SessionStore
made = {}
later = timezone.now() + timedelta(days=1)
for name, how in json.loads(%r).items():
    if how["wall"]:
        link, token = wall_links.create(
            name=name, clusters=how["wall"], created_by="test", now=timezone.now())
        made[name] = {"id": link.pk, "key": token}
        continue
    user = User.objects.create_user(name)
    # The slow hash that protects real passwords would take a third of a second for each.
    user.password = PBKDF2PasswordHasher().encode("secret-" + name, "salt", iterations=1)
    user.save()
    if how["own"]:
        user.user_permissions.add(read)
    else:
        group = Group.objects.create(name=name)
        group.permissions.add(read)
        user.groups.add(group)
    if how.get("token"):
        token, text = api_tokens.create(
            name=name, user=user, role="operator", now=timezone.now(), expires_at=later)
        made[name] = {"id": token.pk, "user": user.pk, "token": text}
        continue
    session = store()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.create()
    cookie = settings.SESSION_COOKIE_NAME + "=" + session.session_key
    made[name] = {"id": user.pk, "session": session.session_key, "cookie": cookie}
print("made " + json.dumps(made))
"""

READER: dict[str, Any] = {"wall": [], "own": False}
BY_OWN_PERMISSION: dict[str, Any] = {"wall": [], "own": True}
TOKEN: dict[str, Any] = {"wall": [], "own": False, "token": True}


def wall(*clusters: str) -> dict[str, Any]:
    return {"wall": clusters, "own": False}


def make(data: Path, wanted: dict[str, dict[str, Any]], **extra: str) -> dict[str, dict[str, Any]]:
    """By name: a user's id, session and cookie, a wall link's id and key, a token and its id."""
    done = manage(data, "shell", "-c", SCRIPT % json.dumps(wanted), **extra)
    assert done.returncode == 0, done.stderr
    made: dict[str, dict[str, Any]] = json.loads(done.stdout.rpartition("made ")[2])
    return made
