"""Tests of what a person changes in a Lease."""
