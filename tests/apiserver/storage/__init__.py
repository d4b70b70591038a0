"""What was acknowledged stays."""
