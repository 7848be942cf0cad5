"""Migration of nodes from Python to the direct engine on live traffic, and back (docs/spec/migration.md).

The packages, from the top: `router` routes requests and updates the store; `workers` runs engines in child processes;
`shadow` holds executions of two engines; `stores` persists modes and evidence; `compare` compares two executions;
`control` decides modes; `statistics` holds the pure functions that `control` rests on.
"""
