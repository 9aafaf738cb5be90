"""The desktop program, the command line, sessions and reports."""
