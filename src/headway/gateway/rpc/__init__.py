"""RPC over a WebSocket at `/rpc`: the same operations as HTTP, and events on the same connection.

A connection has one reader and one writer. Calls run side by side, at most so many, and the reader waits while
all places are taken: the client's own flow control is the bound. What goes out is answers, of which there are no
more than calls, and events, which are read from the journal when the connection can take them: so nothing piles up
for a client that does not read, and it is cut off. If this were wrong, a client would wait for an answer that
never comes.
"""
