"""Coordinated leader election: choose the holder of a Lease among its LeaseCandidates."""
