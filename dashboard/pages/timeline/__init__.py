"""Who held what over time."""
