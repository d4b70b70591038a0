"""Links that open the wall without signing in. Tests: tests/access."""
