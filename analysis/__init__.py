"""The numerics of Shakedown: arrays in, result objects out."""
