"""How a page answers, and what it shows around its content. Tests: tests/pages."""
