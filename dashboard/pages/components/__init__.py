"""Every partial in every state."""
