"""Tests of the form that creates a Lease."""
