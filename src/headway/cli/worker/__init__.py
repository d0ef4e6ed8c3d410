"""`headway worker`: a node without HTTP that runs the agents of the user's own module.

`command` reads the options, `agents` finds the user's `Headway`, `service` keeps it running until a signal
says otherwise. If this room is wrong, a deployment cuts turns that it should have waited for.
"""
