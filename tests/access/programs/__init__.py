"""How programs get in."""
