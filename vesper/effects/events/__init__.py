"""The effect `event_publish`."""
