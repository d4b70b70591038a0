"""Leases, changes and histories, made by hand."""
