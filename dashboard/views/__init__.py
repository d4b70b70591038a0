"""One file per page; access on the first line. Tests: tests/dashboard."""
