"""Listening, and what strangers send."""
