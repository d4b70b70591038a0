"""The list of Leases, now or as of an instant."""
