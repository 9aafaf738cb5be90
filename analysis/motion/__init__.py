"""What kind of motion a record shows, with the evidence, and its exponent with all of its error."""
