"""The Python API: `vesper.load` returns a node that is called like a function. `import vesper` imports none of it."""
