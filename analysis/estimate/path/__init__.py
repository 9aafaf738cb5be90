"""Maximum likelihood over the states at all samples and the parameters."""

REFERENCES = [
    "Z. Liu, H. Fang, K.-W. Wang, J. Xu, Mech. Syst. Signal Process. 108 (2018) 97-111",
    "H. G. Bock, Recent advances in parameter identification for ordinary differential equations (1983)",
    "A. E. Bryson, M. Frazier, Smoothing for linear and nonlinear dynamic systems (1963)",
]
