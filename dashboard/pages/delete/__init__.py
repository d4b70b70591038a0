"""Delete a Lease, or many."""
