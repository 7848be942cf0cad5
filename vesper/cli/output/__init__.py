"""Text of outcomes, values and paths for the terminal."""
