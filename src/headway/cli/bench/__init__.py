"""`headway bench`: how fast a running server takes tasks and gets them done. Quick and honest, not a study.

`load` asks and measures, `figures` works out what was measured, `command` is the command line. If this room is
wrong, a person chooses limits by numbers that were never true.
"""
