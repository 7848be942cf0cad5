"""Lowering of agents: the ordinary flow that stands for a node of type `agent`."""
