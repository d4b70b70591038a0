"""Signing in: links that work once, and limits on guessing. Tests: tests/access."""
