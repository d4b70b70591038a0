"""What pages ask, as read from a URL, and the answers. Tests: tests/parts."""
