"""Tests of leases.history.reliability."""
