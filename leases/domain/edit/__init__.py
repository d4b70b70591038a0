"""What a person changes in a Lease, as a merge patch of exactly those fields."""
