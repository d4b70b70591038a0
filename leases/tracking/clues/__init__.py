"""What the Leases show beside their changes: renewals that came late, and silences of all."""
