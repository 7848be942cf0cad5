"""Explanations of outcomes: conditions, matched rows, parameters, reasons, and the nearest input."""
