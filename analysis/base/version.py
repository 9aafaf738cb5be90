"""The version of the program, said only here: packages, reports and recordings take it."""

__version__ = "0.1.0"
