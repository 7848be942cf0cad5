// Loads the page again while the audit log is verified: its progress is no change of a topic.
setTimeout(() => location.reload(), 1000);
