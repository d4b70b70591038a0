"""The pages of refused and failed requests."""
