"""What a model does in the long run: equilibria, periodic orbits, sections, bifurcations, exponents."""
