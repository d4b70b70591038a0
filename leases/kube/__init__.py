"""The cluster: connect to it, one method per verb, list and watch for ever.

Only this room and `leases.demo` import `kubernetes` and aiohttp. All failures leave it as an
`ApiError` of `leases.wire.status`. May import `leases.wire` and `leases.domain`. Tests: tests/kube.
"""
