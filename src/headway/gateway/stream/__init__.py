"""What goes on for long: the stream of events, the live output of runs, and how a slow client is cut off.

All listeners read one journal, each from its own place, so a listener costs a number and no queue: nothing is kept
for a client that does not read. It is cut off when it takes nothing for `send_within`, or when more than
`stream_backlog` events wait for it; it comes back with the id of the last event that it saw and misses nothing, as
long as the journal remembers that far. If this room were wrong, one client that stands still could fill the memory
of the node, or a client that was cut off would not know what it missed.
"""
