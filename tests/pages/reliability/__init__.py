"""Tests of dashboard.pages.reliability."""
