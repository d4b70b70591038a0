"""The limits of a listening port: files, connections, heads, bodies and slow readers.

The embedded Lease API and the pages both listen through this room. May import the standard library
and uvicorn. Tests: tests/listener, on real sockets.
"""
