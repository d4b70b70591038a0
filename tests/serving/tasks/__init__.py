"""What the process does beside answering: watching, clock, retention."""
