"""Support code of generated Python: entry, flow, metering and tracing."""
