"""Which incidents are messages, for whom, and what the messages say. Tests: tests/domain/notify."""
