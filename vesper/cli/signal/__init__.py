"""The command `vesper signal`."""
