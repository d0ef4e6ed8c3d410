"""What executes attempts. Each runner is an adapter of `ports.Runner`.

May import `ports`, `turn` and `model`. A runner's awaitable must not end before its work has really ended:
the session's slot hangs on it (S-3).
"""
