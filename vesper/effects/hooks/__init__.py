"""Hooks of the application around effects: before and after calls of tools and models."""
