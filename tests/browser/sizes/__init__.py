"""Every page with long names, from a phone to a wall that stands upright."""
