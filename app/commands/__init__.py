"""One file per command of `shakedown`; each has `configure(parser)` and `run(args)`."""
