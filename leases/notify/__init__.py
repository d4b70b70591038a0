"""Send messages to receivers: HTTP with aiohttp, e-mail by SMTP. It knows no database. Tests:
tests/notify."""
