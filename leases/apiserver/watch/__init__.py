"""Watches: events are encoded once and queued for each watcher. Imports registry and http."""
