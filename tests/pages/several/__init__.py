"""Pages over several clusters."""
