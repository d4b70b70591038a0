"""Create a Lease."""
