"""A list declared once: the parameters of its URL, its links, and its answers as page or file.

Knows no Lease. Imports access and the board. Tests: tests/lists, and those of the pages.
"""
