"""HTTP: the port, limits of a connection, routes, negotiation, bodies."""
