"""Homotopy with a PID controller (Manikantan et al. 2020)."""
