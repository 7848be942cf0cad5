"""The router of live traffic, the state of each node in a process, and its store synchronisation."""
