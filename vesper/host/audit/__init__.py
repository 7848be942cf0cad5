"""Lines of the audit log about runs."""
