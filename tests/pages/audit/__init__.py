"""Tests of dashboard.pages.audit."""
