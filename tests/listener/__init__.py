"""The room of listening ports."""
