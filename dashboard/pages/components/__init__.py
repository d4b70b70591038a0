"""Every partial in every state, with made-up Leases."""
