"""Decision tables of the playground as grids to edit."""
