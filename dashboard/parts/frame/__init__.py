"""How a page answers, and what stands around its content. Tests: tests/pages."""
