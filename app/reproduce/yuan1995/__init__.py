"""Tables of Yuan 1995: models of chaotic systems from the periodic orbits in their records."""
