"""Delete many Leases: what was chosen, the requests, and the record of each in the audit trail."""
