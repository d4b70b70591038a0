"""What two observations of one Lease tell: changes, their identity, and when they were written."""
