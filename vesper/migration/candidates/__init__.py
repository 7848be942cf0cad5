"""Live candidates: another version of a node that follows the lead of a name and performs nothing."""
