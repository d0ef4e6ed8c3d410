"""`headway top`: a live screen of a server: lanes, agents, sessions, nodes, and what happens.

`board` is all that a picture shows, a value; `watcher` asks the server for it; `picture` draws it, as large as the
terminal is; `command` puts them together. If this room is wrong, a person trusts a screen that is not the server.
"""
