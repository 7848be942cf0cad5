"""The OpenAPI document of a service, and its page."""
