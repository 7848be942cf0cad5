"""Nodes from Python: `vesper.load` gives a node that is called like a function. `import vesper` loads none of it."""
