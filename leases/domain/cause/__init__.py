"""Why a Lease changed hands: causes with their evidence, and which changes are one incident.

Pure: values in, values out, `now` always an argument. Imports only `leases.domain`.
Tests: tests/domain/cause.
"""
