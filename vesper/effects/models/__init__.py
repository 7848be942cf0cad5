"""The effect `model_call`."""
