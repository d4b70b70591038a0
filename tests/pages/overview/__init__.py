"""Tests of overview."""
