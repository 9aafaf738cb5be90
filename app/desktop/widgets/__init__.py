"""Small building blocks shared by the pages."""
