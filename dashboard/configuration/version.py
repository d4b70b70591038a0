"""The version of this code. CHANGELOG.md and pyproject.toml name the same; a test compares them."""

VERSION = "0.1.0"
