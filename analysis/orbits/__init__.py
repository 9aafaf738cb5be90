"""Periodic orbits in a record: close returns, forced and autonomous orbits, multipliers."""
