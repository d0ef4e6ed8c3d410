"""`headway chat`: a conversation with an agent of a running server, at a terminal or through a pipe.

`editor` is the line that is being typed and `talk` the conversation: both are tested without a terminal. `link`
keeps the connection to the server, also when that goes away for a while. `screen` draws, `interactive` and `piped`
are the two ways to use it. If this room is wrong, a person's words get lost on the way, or are said twice.
"""
