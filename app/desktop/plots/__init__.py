"""Plots: each can be zoomed, read with a crosshair and exported, and has units on its axes."""
