"""The desktop program: one window from shaker to equation."""
