"""Figures for files and reports, drawn with matplotlib."""
