"""Recorded executions, their comparison, and the record of a divergence."""
