"""The geometry of charts, pure; templates draw them. Tests: tests/charts."""
