"""Questions that pages and programs ask history. Tests: tests/history."""
