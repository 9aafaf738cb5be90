"""Plans of the next record, made from fits and a rig's profile: for the command line and the window."""
