"""Parse ports and show paths, for every command that listens."""

from __future__ import annotations

from argparse import ArgumentTypeError
from pathlib import Path

LAST_PORT = 65535


def parse_port(text: str, *, least: int = 1) -> int:
    """Parse a port from the command line, which prints the error as one sentence."""
    digits = text.isascii() and text.isdecimal() and len(text) <= len(str(LAST_PORT))
    if not digits or not least <= int(text) <= LAST_PORT:
        raise ArgumentTypeError(
            f"{text[:20]!r} is no port; write a number from {least} to {LAST_PORT}"
        )
    return int(text)


def shown_path(path: Path) -> str:
    """Return the path relative to the working directory if that is shorter."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)
