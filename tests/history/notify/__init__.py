"""What reads history."""
