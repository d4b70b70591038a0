"""`/healthz` and `/readyz`. Tests: tests/health."""
