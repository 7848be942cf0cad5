"""Functions of FEEL, by the type of their first argument."""
