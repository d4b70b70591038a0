"""Writing changes to the database. Tests: tests/history."""
