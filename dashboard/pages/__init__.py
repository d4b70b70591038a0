"""One folder for each page: view, filter, and what it shows. Tests: tests/pages."""
