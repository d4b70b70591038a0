"""A small busy cluster for newcomers: electors, kubelets and API servers renew, crash and return.

It is a client of the API like any other. May import `leases.wire`, `leases.domain` and aiohttp.
Tests: tests/demo.
"""
