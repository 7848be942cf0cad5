"""Supervision trees and durable mailboxes of agents (docs/spec/supervision.md)."""
