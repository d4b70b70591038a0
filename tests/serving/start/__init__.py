"""What the process needs to start, and what it refuses."""
