"""Exports of traces: spans of OpenTelemetry, and records of model and agent calls."""
