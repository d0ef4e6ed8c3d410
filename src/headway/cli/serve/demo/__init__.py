"""`headway serve --demo`: a server that is worth watching from its first minute.

`agents` says who works there, `traffic` lets people and programs ask them, for ever, and `narrator` tells a person
at a terminal what happens; `hints` says what to try next, `showing` puts all together. Everything goes the ways
that a user's own agents and callers go. If this room is wrong, a newcomer sees a server that does nothing, or one
that cannot be followed.
"""
