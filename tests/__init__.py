"""Tests, in folders named as the rooms they test."""
