"""Scales and geometry of pictures; templates draw them. Pure. Tests: tests/charts."""
