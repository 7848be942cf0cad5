"""Being seen: metrics, spans and logs of a running Vesper."""
