"""Read filters and times from URLs, and find what they select. Tests: tests/parts."""
