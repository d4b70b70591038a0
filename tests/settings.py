"""The dashboard's settings over a data directory that the tests throw away."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile

for name in [name for name in os.environ if name.startswith("LEASEBOARD_")]:
    del os.environ[name]
os.environ["LEASEBOARD_DATA"] = tempfile.mkdtemp(prefix="leaseboard-tests-")
atexit.register(shutil.rmtree, os.environ["LEASEBOARD_DATA"], ignore_errors=True)

from dashboard.settings import *  # noqa: E402, F403

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
