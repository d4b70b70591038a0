"""Who may see and do what, and what happens when a right ends."""
