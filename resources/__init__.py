"""Models, rig profiles, icons, styles and the example recordings."""
