"""Maximum likelihood over the states at all samples and the parameters."""
