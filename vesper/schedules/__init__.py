"""Schedules of `scheduled_job` nodes: cron times in a zone, one run among all processes."""
