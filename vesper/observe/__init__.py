"""Telemetry of runs: spans, logs and metrics. Works without OpenTelemetry; the extra `observe` adds its export."""
