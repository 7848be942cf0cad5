"""Settings of gunicorn: `gunicorn service:application` in the folder of this file."""

bind = "127.0.0.1:8000"
workers = 2
worker_class = "uvicorn_worker.UvicornWorker"
graceful_timeout = 30
"""As `grace` of vesper.toml, and 10 s to write evidence."""
timeout = 60
