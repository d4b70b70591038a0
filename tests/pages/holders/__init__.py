"""Tests of holders."""
