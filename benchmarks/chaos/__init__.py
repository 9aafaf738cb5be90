"""Verdicts, exponents and dimensions from one channel of 20 000 samples, against truth from the equations.

    python -m benchmarks.chaos [orbits] [--seeds 1] [--regular 20] [--only NAME]

The largest exponent is compared with that of the variational equations, the dimension with the
Kaplan-Yorke dimension (an upper bound of the correlation dimension, within a few hundredths for these flows).
``orbits`` compares periodic orbits and their multipliers with Newton's method on the equations.
"""
