"""What is decided: modes, evidence and statistics, as pure functions without a clock, a store or a thread."""
