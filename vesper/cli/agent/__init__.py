"""The command `vesper agent`."""
