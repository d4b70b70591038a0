"""Log lines as JSON, and the ids of requests in them. Tests: tests/access."""
