"""What to measure next: which drive shrinks the error bars most, and for how long."""
