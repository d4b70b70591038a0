"""Who may manage whom in /admin/. Tests: tests/access."""
