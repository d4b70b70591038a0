"""What a person sees; also the Django project. Imports `leases`, never the other way round.

Tests: tests/pages, tests/parts, tests/live, tests/browser.
"""
