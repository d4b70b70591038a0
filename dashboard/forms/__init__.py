"""Forms check shape only; the API server's dry run has the last word. Tests: tests/dashboard."""
