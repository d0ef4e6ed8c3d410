"""Where runs are remembered. Each store is an adapter of `ports.Store` and passes the same contract tests.

May import `ports`, `core` (for the actions it records) and `model`. A store decides nothing about runs; if it
did, the rule would exist once in Python and once more in its own language.
"""
