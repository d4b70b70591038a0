"""What a listening port of ours bears: files, connections, heads, bodies and readers that stall.

The embedded Lease API and the pages both listen through this room. It may import the standard
library and uvicorn. Its tests are in tests/listener, on real sockets.
"""
