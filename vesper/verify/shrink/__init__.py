"""Shrinking of failing inputs."""
