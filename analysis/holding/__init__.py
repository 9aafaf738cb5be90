"""Holding unstable periodic orbits of a specimen by small corrections of its drive."""
