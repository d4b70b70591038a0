"""The room's page."""
