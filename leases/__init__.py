"""What is true of Leases, with nobody looking. Never imports `dashboard`.

The rooms and who may import whom: docs/contributing.md.
"""
