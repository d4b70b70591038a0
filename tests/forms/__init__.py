"""Tests of the forms of admins."""
