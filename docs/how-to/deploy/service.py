"""Nodes as an ASGI application, for uvicorn and gunicorn."""

import vesper.serve

application = vesper.serve.app("nodes", config="vesper.toml")
