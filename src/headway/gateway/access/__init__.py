"""Who asks, and what they may (O-4): tokens and their scopes, callers of the same machine, how often each may ask.

If this is wrong, somebody sees or does what he must not; so each file has one rule, and most are pure.
"""
