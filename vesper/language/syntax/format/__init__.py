"""The formatter of `vesper fmt`."""
