"""Copy what a restore needs into one file, and back. Tests: tests/serving/backups."""
