"""Uncoupled output error: one simulated motion a stretch, found by growing and windowed searches."""
