"""Child processes: workers isolate the direct engine, the helper repeats comparisons in the background."""
