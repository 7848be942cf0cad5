"""Forms of a node for Python programs: dataclasses of inputs and outputs, and HTML for notebooks."""
