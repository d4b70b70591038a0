"""Tests of edit."""
