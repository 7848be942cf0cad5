"""How a node is moved from Python to the direct engine on live traffic, and taken back (docs/spec/migration.md).

From above: `live` routes requests and tells the store what was seen; `apart` runs in processes of its own; `follow` has
executions that hold two engines; `stores` keeps modes and evidence; `compare` says whether two executions did the same;
`decide` holds the decisions, as pure functions.
"""
