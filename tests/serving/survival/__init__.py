"""Disks, databases, Leases and deaths that a running process survives."""
