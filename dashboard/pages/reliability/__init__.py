"""Reliability: how long elections had no holder, by day, week and quarter."""
