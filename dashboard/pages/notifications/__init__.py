"""Receivers of messages, the log of messages, mutes and maintenance windows."""
