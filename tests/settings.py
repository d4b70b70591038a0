"""The dashboard's settings over a data directory that the tests throw away.

TEST_DATABASE_URL runs them on another database than SQLite; see tests/test_postgresql.py.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile

for name in [name for name in os.environ if name.startswith("LEASEBOARD_")]:
    del os.environ[name]
os.environ["LEASEBOARD_DATA"] = tempfile.mkdtemp(prefix="leaseboard-tests-")
atexit.register(shutil.rmtree, os.environ["LEASEBOARD_DATA"], ignore_errors=True)
# Each client of an API server would read 140 authorities of the system, which takes 25 ms; no test
# asks one that they vouch for.
os.environ["SSL_CERT_FILE"] = os.environ["SSL_CERT_DIR"] = os.devnull
if database_url := os.environ.get("TEST_DATABASE_URL"):
    os.environ["LEASEBOARD_DATABASE_URL"] = database_url

from dashboard.settings import *  # noqa: E402, F403
from dashboard.settings import BASE_DIR, TEMPLATES  # noqa: E402

ROOT_URLCONF = "tests.components.urls"
TEMPLATES[0]["DIRS"].append(BASE_DIR / "tests/components/templates")  # type: ignore[attr-defined]

# The slow hash that protects real passwords would take a third of a second for each sign-in.
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
