"""Tracking branches on a rig: what the command and the window share."""
