"""Calls of nodes without effects that are counted or have spans."""
