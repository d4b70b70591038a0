"""Edit a Lease."""
