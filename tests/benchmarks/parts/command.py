"""The `main` of every benchmark: arguments, a folder that is thrown away, an exit code."""

from __future__ import annotations

import sys
import tempfile
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

Options = Callable[[ArgumentParser], object]


def no_options(_parser: ArgumentParser) -> None:
    """For a benchmark that takes none."""


def main(
    about: str | None,
    measure: Callable[[Namespace, Path], int | None],
    options: Options = no_options,
) -> NoReturn:
    """Parse the arguments, measure, and exit with what `measure` returns (None is success)."""
    parser = ArgumentParser(description=about, formatter_class=RawDescriptionHelpFormatter)
    options(parser)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        sys.exit(measure(asked, Path(folder)))
