"""Everything about one Lease."""
