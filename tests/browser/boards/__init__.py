"""Overview, Leases, Nodes and the wall in Chromium."""
