"""Programs that tests start as processes, and faults done to them."""
