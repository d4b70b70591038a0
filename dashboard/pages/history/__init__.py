"""Every change."""
