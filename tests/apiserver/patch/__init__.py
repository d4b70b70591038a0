"""Patches of every kind, and who owns which field."""
