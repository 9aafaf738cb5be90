"""Weak form with B-spline test functions (Liu, Fang, Wang, Xu 2018)."""
