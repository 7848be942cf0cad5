"""Ways of the public API, for `vesper verify`: calls, JSON text, tables, routed calls."""
