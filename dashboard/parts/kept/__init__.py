"""What is known of a cluster, and what is kept because it costs. Tests: tests/parts."""
