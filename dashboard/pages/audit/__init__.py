"""Who edited what."""
