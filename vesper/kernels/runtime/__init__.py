"""Runtime support of generated Python: entry, flow, metering and tracing."""
