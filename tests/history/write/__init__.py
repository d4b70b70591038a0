"""What writes history."""
