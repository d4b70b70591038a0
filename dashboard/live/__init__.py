"""What happens now, on its way to browsers and other programs: publisher, readers, consumers.

The only room that knows Channels. Tests: tests/live.
"""
