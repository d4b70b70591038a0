"""Links that open the wall."""
