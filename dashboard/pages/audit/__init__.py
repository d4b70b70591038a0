"""The audit trail: who edited what."""
