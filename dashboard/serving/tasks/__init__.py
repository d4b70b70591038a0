"""The background tasks of the process and their supervisor. Tests: tests/serving."""
