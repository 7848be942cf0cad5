"""The command `vesper work`."""
