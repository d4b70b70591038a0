"""What to do when a client is not on the machine: skip, but fail where nothing may be missing."""

from __future__ import annotations

import importlib
import os
import shutil
from typing import Any

import pytest


def absent(client: str) -> None:
    """Skip the test; with CI=true the client should have been installed, so fail."""
    message = f"{client} is not on this machine"
    if os.environ.get("CI") == "true":
        pytest.fail(f"{message}, and in CI every client but kubectl must be", pytrace=False)
    pytest.skip(message)


def imported(module: str) -> Any:
    """A module of a client."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError:
        return absent(module.partition(".")[0])


def program(name: str) -> str:
    """The path of an installed program."""
    return shutil.which(name) or str(absent(name))
