"""Import of DMN models: XML reader, FEEL parser, typed translation to expressions of Vesper."""
