"""A module for each page, a folder for a large one; no page imports another. Tests: tests/pages."""
