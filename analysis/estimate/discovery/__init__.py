"""Which equation? Terms chosen from a library by weak form, likelihood of the path and criterion."""
