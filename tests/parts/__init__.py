"""Tests of parts."""
