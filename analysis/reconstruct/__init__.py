"""Phase space from data: delay, dimension, neighbours, exponents."""
