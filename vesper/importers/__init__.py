"""Import of rules that other tools wrote: models become the text of readable nodes."""
