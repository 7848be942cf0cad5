"""Pages and their API over the stores of a configuration, in a process of its own."""
