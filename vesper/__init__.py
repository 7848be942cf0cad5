"""Vesper: business logic written once, run on two engines that are shown to agree."""

__version__ = "0.2.0"
