"""Users, impersonation and reviews of the embedded Lease API."""
