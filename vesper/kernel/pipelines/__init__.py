"""Pipelines as people write them: files `NAME.pipeline.yaml`, read into the kernel's configuration."""
