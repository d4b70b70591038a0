"""All heartbeats as one picture."""
