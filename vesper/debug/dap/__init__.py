"""The Debug Adapter Protocol over a debugging session."""
