"""Signing in by the headers of an authenticating proxy. Tests: tests/access/proxy."""
