"""The embedded Lease API: what kube-apiserver serves for Leases, as a plain ASGI app kept in
SQLite.

May import leases.wire and leases.domain, msgspec, PyYAML and uvicorn; never Django. Nothing else in
`leases` knows it. Behaviour is that of kube-apiserver 1.36, recorded in tests/conformance/cases and
replayed by tests/apiserver/test_conformance.py; the other tests are in tests/apiserver/.
"""
