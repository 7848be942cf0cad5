"""The formatter behind `vesper fmt`."""
