"""Where modes, evidence and divergences are kept, and what a batch of what was seen does to them."""
