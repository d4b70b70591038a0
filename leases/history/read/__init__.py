"""What pages and programs ask of history. Tests: tests/history."""
