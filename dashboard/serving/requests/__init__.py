"""How requests get threads, database connections and a port. Tests: tests/serving."""
