"""Resources beside Leases: what the registry does for them."""
