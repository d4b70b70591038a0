"""Which Leases there are."""
