"""Who asks: bearer tokens with a role. Imports storage."""
