"""Search over starts and over terms."""
