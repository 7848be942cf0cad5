"""Vesper: business logic written once, run on two engines that are shown to agree."""

__version__ = "0.1.0"
