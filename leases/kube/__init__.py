"""The cluster: SOURCE to client, one verb per method, list then watch for ever.

The only room but `leases.demo` that imports `kubernetes` and aiohttp; above it nobody sees either:
every failure is an `ApiError` of `leases.wire.status`. May import `leases.wire` and
`leases.domain`. Tests: tests/kube.
"""
