"""Elections: candidates, versions, and what happens if the holder dies."""
