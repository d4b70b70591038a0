"""Changes between two observations of a Lease, their identity, and when they were written."""
