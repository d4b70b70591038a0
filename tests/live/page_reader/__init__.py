"""What the socket of one page sends."""
