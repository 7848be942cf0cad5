"""Random well-typed programs."""
