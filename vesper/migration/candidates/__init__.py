"""Live candidates: versions of a node that follow the lead and perform nothing."""
