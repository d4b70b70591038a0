"""Changes on their way into the database. Tests: tests/history."""
