"""How the process runs: what it starts, supervises and stops.

May import every other room of the dashboard and all of `leases`; nothing but the entry points
(lifespan, commands, `dashboard.serving.runtime`) imports it. Its tests are in `tests/serving/`.
"""
