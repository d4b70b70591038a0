"""Database tables by subject: fields and constraints only. Import them from `leases.models`."""
