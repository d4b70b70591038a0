"""Collecting the static files at the start: once, and anew when there is a reason."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dashboard.serving.pages_port import collect


@pytest.fixture
def collected(tmp_path, settings) -> tuple[Path, Path]:
    """A source file and where the files were collected."""
    source = tmp_path / "source"
    source.mkdir()
    (source / "own.css").write_text("a { color: red }")
    settings.STATICFILES_DIRS = [source]
    settings.STATIC_ROOT = tmp_path / "static"
    collect(settings.STATIC_ROOT)
    return source / "own.css", settings.STATIC_ROOT


def test_other_files_of_the_static_directory_stay(collected):
    _, root = collected
    (root / "own.css").write_text("kept")
    collect(root)
    assert (root / "own.css").read_text() == "kept"


def test_a_changed_source_is_collected(collected):
    source, root = collected
    source.write_text("a { color: green }")
    later = source.stat().st_mtime + 10  # Django compares whole seconds
    os.utime(source, (later, later))
    collect(root)
    assert (root / "own.css").read_text() == "a { color: green }"


def test_an_empty_file_has_all_written_anew(collected):
    _, root = collected
    (root / "own.css").write_text("")
    collect(root)
    assert (root / "own.css").read_text() == "a { color: red }"
