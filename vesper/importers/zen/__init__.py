"""Import of JSON decision models (JDM) of GoRules Zen: graphs of decision tables, expressions and switches."""
