"""One field that finds Leases, holders, incidents, pages and actions of all clusters."""
