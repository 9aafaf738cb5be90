"""Tables of Manikantan et al. 2020: homotopy with a controller, few sensors and poor guesses."""
