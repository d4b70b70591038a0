"""How programs get in: API tokens, and refusals as JSON. Tests: tests/access/programs."""
