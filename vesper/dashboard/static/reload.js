// Loads the page again while work without a topic of its own makes progress.
setTimeout(() => location.reload(), 1000);
