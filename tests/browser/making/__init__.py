"""Creating and deleting Leases in Chromium."""
