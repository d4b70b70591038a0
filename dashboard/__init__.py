"""The web application, also the Django project. It imports `leases`, never the other way round.

Tests: tests/pages, tests/parts, tests/live, tests/browser.
"""
