"""Calendars that several families of kernels share."""
