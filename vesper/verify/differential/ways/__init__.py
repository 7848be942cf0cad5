"""Ways into a node besides its engine forms, each compared with the reference engine."""
