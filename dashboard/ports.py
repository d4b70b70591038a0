"""What commands that listen have in common: ports as they are typed, places as they are shown."""

from __future__ import annotations

from argparse import ArgumentTypeError
from pathlib import Path


def parse_port(text: str) -> int:
    """A port as it was typed; a mistake is told by the command line in one sentence."""
    if not text.isdecimal() or not 0 < int(text) < 65536:
        raise ArgumentTypeError(f"{text!r} is no port; write a number from 1 to 65535")
    return int(text)


def shown_path(path: Path) -> str:
    """Relative to here where that is shorter to copy."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)
