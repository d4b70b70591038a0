"""Rights of open sockets and long answers, and how they end. Tests: tests/access."""
