"""Loopback servers that speak the protocols of model providers."""
