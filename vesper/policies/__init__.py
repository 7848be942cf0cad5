"""Policies as pure machines, `step(state, event, now)`: no clock, no thread, no network. The Host drives them.

One module is one policy: `retry`, `deadline`, `breaker`, `rate_limit`, `concurrency`. `gate` puts the last three
together: whether an attempt may go out. States, events and decisions are frozen values; a time is a whole number of
microseconds of whatever clock the caller has, and a random number comes in with the event. A decision has a record
form for the journal (`records`). docs/spec/policies.md says what each machine promises.
"""
