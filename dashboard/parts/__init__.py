"""Parts that several pages show. Imports lists, charts and access. Tests: tests/parts."""
