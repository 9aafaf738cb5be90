"""Unknown functions: damping, restoring force, stiffness along a beam."""
