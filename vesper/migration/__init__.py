"""How a node is moved from Python to the direct engine on live traffic, and taken back.

The decisions are pure code, without a store, a thread or a clock. `modes` says what runs in each mode and which changes
of mode exist. `wilson` and `evalue` are the two statistics that must agree before a node is promoted, `confidence` puts
them together. `evidence` is what counts as evidence and how it merges over processes. `cusum` and `latency` watch for
trouble. `state` holds the values that go in and come out, and `controller` is the one `step(state, event, now)` machine
for a node and its epoch. `routing` draws the sticky shares. `simulate` runs the real controller under simulated
traffic. docs/spec/migration.md says what all of it promises.

`comparator` (with `tolerances`) says whether two executions did the same, `noise` whether one engine does the same
twice. `diverged` makes of a report what a store keeps of a `divergence`; `shrinking` (with `again` and `simpler`) makes
the smallest case of it.

`routes` is the way in: `router` decides for each request which engines run, `executions` (with `lockstep`, `recorded`
and `follower`) run them, `live` gathers what one process saw of a node, and `process` tells the store of it. `ledger`
says what a batch does to the state, once for every `store`. `spool` and `flights` are what a process leaves behind that
is killed; `isolation` and `helper` are processes of our own; `adopting` puts a node behind somebody's function.
"""
