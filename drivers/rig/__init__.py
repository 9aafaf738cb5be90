"""What a rig is: its profile, and the player of its drive."""
