"""Verdicts, exponents, dimensions and orbits from one channel, against truth from the equations."""
