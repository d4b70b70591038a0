"""Tests of the deletion of many Leases."""
