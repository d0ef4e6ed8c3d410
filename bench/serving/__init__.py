"""What `bench http` needs: the two servers, each a process of its own, and a client that is quicker than both.

`headway serve` is the real one, on SQLite, with its log, its metrics and its events, as by default. Beside it
stands a Litestar app that reads the same body into the same struct and answers, and does nothing else. Both are
served by uvicorn, on the same loop.
"""
