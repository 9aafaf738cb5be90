"""Harmonic balance on periodic orbits (Yuan 1995)."""
