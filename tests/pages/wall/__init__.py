"""Tests of wall."""
