"""What changes add up to: terms, gaps, states at an instant, and unwatched times."""
