"""Everything about Leases that needs no user interface. Never imports `dashboard`.

The rooms and their imports: docs/contributing.md.
"""
