"""Decision tables: their model, the grammar of cells, and the analysis of gaps and overlaps."""
