"""Parts that several pages show. Imports charts and access. Tests: tests/parts."""
