"""Messages that wait or were sent, receivers, and times without messages. Tests:
tests/history/notify."""
