"""What templates need beside Django's own. Tests: tests/pages."""
