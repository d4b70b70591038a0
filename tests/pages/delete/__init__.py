"""Tests of the forms that delete Leases."""
