"""The wall display of a room."""
