"""Policies of an effect: its settings, and the rule of retries that checks and generated comments need.

The Host applies policies in Rust (`direct_runtime/crates/vesper-host/src/policy`); docs/spec/policies.md defines them.
"""
