"""What runs in processes of its own: an engine that may not take callers with it, work that may not slow them."""
