"""HTTP: the port, what a connection may do, routes, negotiation, bodies."""
