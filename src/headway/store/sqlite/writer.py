"""Transactions: what was asked for while the last one was written goes into the next one together."""

import asyncio
import contextlib
import sqlite3
import threading
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from headway.model.errors import StoreRefused, StoreUnavailable
from headway.store.sqlite.database import Database, error_from, is_of_one_request

T = TypeVar("T")


class Request(Protocol):
    """One call, as the thread sees it."""

    def work(self, database: Database, again: bool = False) -> None:
        """Do it. With `again` from the start: the transaction was given up because of one of its requests."""
        ...

    def fail(self, error: BaseException) -> None:
        """It could not be done; nothing of it was kept."""
        ...

    def answer(self) -> None:
        """Tell the caller. On the event loop, after the commit."""
        ...


class Call(Generic[T]):
    """A call with one answer."""

    def __init__(
        self,
        task: Callable[[Database], T],
        future: "asyncio.Future[T]",
        again: Callable[[Database], T] | None = None,
    ) -> None:
        self._task = task
        self._again = again or task
        self._future = future
        self._result: T | None = None
        self._error: BaseException | None = None

    def work(self, database: Database, again: bool = False) -> None:
        self._error = None
        self._result = self._again(database) if again else self._task(database)

    def fail(self, error: BaseException) -> None:
        self._error = error

    def answer(self) -> None:
        if self._future.done():
            return
        if self._error is not None:
            self._future.set_exception(self._error)
        else:
            self._future.set_result(self._result)  # type: ignore[arg-type]  # set by `work`, of type T


def transact(database: Database, requests: list[Request]) -> None:
    """One transaction for all of these. What is wrong with one of them leaves the others alone."""
    try:
        if _try_all(database, requests):
            return
        database.begin()
        for request in requests:
            _try_one(database, request)
        database.commit()
    except sqlite3.Error as error:
        _give_up(database)
        for request in requests:
            request.fail(error_from(database.path, error))
    except Exception as error:  # noqa: BLE001 - a bug must reach the callers, and not end the thread
        _give_up(database)
        for request in requests:
            request.fail(error)


def _try_all(database: Database, requests: list[Request]) -> bool:
    """The usual way: without a savepoint for each. False: one of them cannot be done, nothing was kept."""
    database.begin()
    try:
        for request in requests:
            request.work(database)
    except Exception as error:
        if not is_of_one_request(error):
            raise
        database.rollback()
        return False
    database.commit()
    return True


def _try_one(database: Database, request: Request) -> None:
    database.save()
    try:
        request.work(database, again=True)
    except Exception as error:
        if not is_of_one_request(error):
            raise
        database.undo()
        request.fail(refusal_of(database.path, error))
    else:
        database.release()


def refusal_of(store: str, error: Exception) -> Exception:
    """What the caller of the one request is told that cannot be done."""
    if isinstance(error, sqlite3.Error):
        return error_from(store, error)
    if isinstance(error, UnicodeError | OverflowError):
        return StoreRefused(store, f"this cannot be written: {error}")
    return error


def _give_up(database: Database) -> None:
    try:
        database.rollback()
    except sqlite3.Error:
        # SQLite has ended the transaction by itself.
        return


def read_all(database: Database, requests: list[Request]) -> None:
    """Answer each from the state of the last commit."""
    for request in requests:
        try:
            request.work(database)
        except sqlite3.Error as error:
            request.fail(error_from(database.path, error))
        except Exception as error:  # noqa: BLE001 - a bug must reach the caller, and not end the thread
            request.fail(error)


class Inline:
    """Does each request at once, where it is asked for: no threads, for tests in virtual time."""

    def __init__(
        self,
        database: Database,
        carry_out: Callable[[Database, list[Request]], None],
        after: Callable[[], None],
    ) -> None:
        self._database = database
        self._carry_out = carry_out
        self._after = after

    def ask(self, request: Request) -> None:
        self._carry_out(self._database, [request])
        self._after()
        request.answer()

    def add_to(self, request: Request, more: Callable[[], None]) -> bool:  # noqa: ARG002 - nothing waits
        return False

    async def close(self) -> None:
        self._database.close()


class Worker:
    """A thread with a connection of its own."""

    def __init__(
        self,
        database: Database,
        carry_out: Callable[[Database, list[Request]], None],
        after: Callable[[], None],
        loop: asyncio.AbstractEventLoop,
        name: str,
    ) -> None:
        self._database = database
        self._carry_out = carry_out
        self._after = after
        self._loop = loop
        self._requests: list[Request] = []
        self._lock = threading.Lock()
        self._wake = threading.Semaphore(0)
        self._closing = False
        self._closed: asyncio.Future[None] = loop.create_future()
        # A daemon: whatever happens to the loop, the thread does not keep the process from ending.
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def ask(self, request: Request) -> None:
        with self._lock:
            if self._closing:
                raise StoreUnavailable(self._database.path, "the store was closed")
            requests = self._requests
            requests.append(request)
        if len(requests) == 1:
            self._wake.release()

    def add_to(self, request: Request, more: Callable[[], None]) -> bool:
        """Let a request that still waits ask for more. False: it is being done, or was."""
        with self._lock:
            waits = request in self._requests
            if waits:
                more()
        return waits

    async def close(self) -> None:
        """What was asked for before is done first."""
        with self._lock:
            closing, self._closing = self._closing, True
        if not closing:
            self._wake.release()
        await self._closed
        self._thread.join()

    def _work(self) -> None:
        while True:
            self._wake.acquire()
            with self._lock:
                requests, self._requests = self._requests, []
                closing = self._closing
            if requests:
                self._carry_out(self._database, requests)
                self._post(self._answer, requests)
                with contextlib.suppress(OSError, RuntimeError):
                    # A hint may be lost: its hearer is closing, or there is no file descriptor left.
                    self._after()
            elif closing:
                self._database.close()
                self._post(self._say_closed, [])
                return

    def _post(self, callback: Callable[[list[Request]], None], requests: list[Request]) -> None:
        """One wake-up of the loop for the whole transaction."""
        try:
            self._loop.call_soon_threadsafe(callback, requests)
        except RuntimeError:
            # The loop is closed: nobody waits any more. What was committed is safe.
            return

    def _answer(self, requests: list[Request]) -> None:
        for request in requests:
            request.answer()

    def _say_closed(self, _: list[Request]) -> None:
        if not self._closed.done():
            self._closed.set_result(None)
