"""Nodes on live traffic: the router, what a process knows of a node and tells the store, and what is done beside."""
