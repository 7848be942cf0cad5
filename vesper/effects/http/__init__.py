"""The effect `http_request`."""
