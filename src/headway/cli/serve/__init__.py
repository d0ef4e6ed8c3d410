"""`headway serve`: one process with everything: HTTP, WebSocket RPC, event streams, scheduler and timers (O-1).

`command` reads the options, `assembling` finds the agents and the store and puts the parts together. The node
lives under the same `Service` as that of `headway worker`; `front` is what stands before it: the gateway behind a
port (`listening`, `addresses`, `protocol`) and the config that can be read again (`reloading`, `overlay`).
`builtin` and `demo` are agents for those who have none yet. If this room is wrong, a deployment cuts turns that it
should have waited for, or callers find a closed port where they should have been told to come later.
"""
