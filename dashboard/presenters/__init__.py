"""What a page shows, as frozen values built from what is known and one `now`: all that a template
ever sees.

May import `leases.domain`, `leases.tracking`, what history keeps in memory, and Django's `reverse`;
no request, no database.
Tests: tests/dashboard/.
"""
