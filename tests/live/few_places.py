"""How many sockets of one account `serve_patiently` has places for."""

PLACES = 50
