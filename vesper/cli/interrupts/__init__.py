"""The command `vesper interrupts`."""
