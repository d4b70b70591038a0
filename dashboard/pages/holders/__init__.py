"""What each pod or node holds."""
