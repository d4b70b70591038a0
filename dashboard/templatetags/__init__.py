"""Template tags and filters. Tests: tests/pages."""
