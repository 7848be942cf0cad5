"""Commands that run in a confined process."""
