"""The gateway: HTTP and WebSocket in front of a Headway. It decides nothing, it translates.

A request goes one way: `limits` bounds it, `access` says who asks, an `Endpoint` of `routes` binds path, query and
body to one struct of `wire`, an operation of `operations` asks the façade, and `errors` is the only place that
turns what went wrong into a status. RPC methods call the same operations. If this room is wrong, callers are told
wrong things or see what is not theirs; no run is lost or started twice, because nothing here keeps runs.

It may import the façade and everything below it, never the command line.
"""

from headway.gateway.app import Gateway, build_app

__all__ = ["Gateway", "build_app"]
