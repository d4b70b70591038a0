"""Watches, alone and in a crowd."""
