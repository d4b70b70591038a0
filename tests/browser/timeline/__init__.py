"""Timeline and history in Chromium."""
