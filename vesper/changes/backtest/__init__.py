"""Backtests: two versions of a node on recorded inputs and answers, compared run by run. Nothing is performed."""
