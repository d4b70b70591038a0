"""What pages say of one Lease: its row, its tile on the wall, its head. Tests: tests/parts."""
