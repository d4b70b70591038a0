"""What changes add up to: terms, gaps, instants, and the times that nobody watched."""
