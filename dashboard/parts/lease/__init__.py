"""One Lease on a page: its row, its tile on the wall, its head. Tests: tests/parts."""
