"""Motion of a model: integrators, flows, sensitivities, sets of motions, virtual records."""
