"""Access to the dashboard: credentials, roles, sessions and checks of every request."""
