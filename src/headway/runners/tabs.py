"""Browser instances: a task is an action in a tab, and goes to the instance that owns the tab (T-3)."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias, cast

from headway.calls import call
from headway.core.template import Unfillable, check_template, fill_url, quoted, sample_url
from headway.model.errors import InvalidInput, UnknownName, WorkFailed
from headway.model.outcome import Json, Reply
from headway.model.runner import TabsSpec
from headway.model.task import Task
from headway.runners.answer import parsed, reply_of
from headway.runners.credentials import bearer, headers_of, token_of
from headway.runners.exchange import BAD_ADDRESS, Ask, Exchange, check_address, encoded
from headway.runners.values import values_of
from headway.turn import Turn

if TYPE_CHECKING:
    from httpx import URL, AsyncBaseTransport

Resolver: TypeAlias = Callable[[str], object]
"""From a tab to the address of the instance that owns it, at once or as an awaitable; None: nobody does."""

TAB_NOT_FOUND = "tab_not_found"
RESERVED = frozenset({"kind", "ref", "selector", "tabId"})
"""What params never say: they would turn a task into another one."""
_DOTS = frozenset({".", ".."})
_A_TAB = "the tab that the action is for"


class TabsRunner:
    """Posts `{kind, ref, selector, …params}` to `/tabs/{tabId}/action` of the instance that owns the tab.

    The map of `instances` is asked first, then the function or the template of the rest. A tab that nobody owns
    fails the task with the code `tab_not_found`, and it is not tried again.
    """

    def __init__(
        self,
        spec: TabsSpec,
        resolver: Resolver | None = None,
        *,
        transport: "AsyncBaseTransport | None" = None,
    ) -> None:
        self._url = spec.url
        self._resolver = resolver
        if not (spec.instances or spec.url or resolver):
            raise InvalidInput("instances", {}, "an address for each tab, or a url, or a function")
        if spec.url and resolver is not None:
            raise InvalidInput("url", spec.url, "empty where a function says who owns a tab")
        if resolver is not None and not callable(resolver):
            raise InvalidInput("resolver", resolver, "a function from a tab to an address, or None")
        if spec.url:
            check_template(spec.url, "url")
            _instance(sample_url(spec.url), "url")
        self._instances = {
            tab: _instance(url, f"instances.{tab}") for tab, url in spec.instances.items()
        }
        headers = headers_of(spec.headers)
        self._token = token_of(spec.token, "token", headers)
        self._tokens = self._checked_tokens(spec, headers)
        self._exchange = Exchange(
            headers=headers,
            max_body=spec.max_body,
            connections=spec.connections,
            transport=transport,
        )

    def check_task(self, task: Task | None) -> None:
        """Refuses at submission what no tab could be found for."""
        if task is None:
            raise InvalidInput(
                "task", None, "a task with an action and a tab_id: the agent does no other work"
            )
        if not task.tab_id or task.tab_id in _DOTS:
            raise InvalidInput("task.tab_id", task.tab_id, _A_TAB)

    async def run(self, turn: Turn) -> Reply:
        try:
            self.check_task(turn.task)
        except InvalidInput as wrong:
            raise WorkFailed(str(wrong), TAB_NOT_FOUND, permanent=True) from wrong
        assert turn.task is not None, "it was looked at"
        instance = await self._owner(turn.task.tab_id, turn)
        token = self._tokens.get(instance, self._token)
        asked = Ask(
            "POST",
            f"{instance}/tabs/{quoted(turn.task.tab_id)}/action",
            encoded(action_of(turn.task)),
            bearer(token),
        )
        async with self._exchange.ask(turn, asked) as answer:
            body = await answer.read()
        return reply_of(parsed(body, answer.media_type))

    async def close(self) -> None:
        await self._exchange.close()

    async def _owner(self, tab: str, turn: Turn) -> str:
        """The address of the instance that owns the tab. What a function raises fails the attempt."""
        known = self._instances.get(tab)
        if known is not None:
            return known
        if self._resolver is not None:
            found = await call(self._resolver, tab)
            if found is not None:
                return self._resolved(found)
        elif self._url:
            try:
                return _instance(fill_url(self._url, values_of(turn)), "url")
            except (Unfillable, InvalidInput):
                pass  # No instance can have such a name.
        raise WorkFailed(
            f"no instance owns the tab {tab[:200]!r}",
            TAB_NOT_FOUND,
            {"tabId": tab[:200]},
            permanent=True,
        )

    def _resolved(self, found: object) -> str:
        try:
            return _instance(found, "resolver")
        except InvalidInput as wrong:
            raise WorkFailed(str(wrong), BAD_ADDRESS, permanent=True) from wrong

    def _checked_tokens(self, spec: TabsSpec, headers: Mapping[str, str]) -> Mapping[str, str]:
        """Tokens by the address of their instance. One that is for nobody is a mistake, if all are known."""
        tokens: dict[str, str] = {}
        for url, token in spec.tokens.items():
            instance = _instance(url, "tokens")
            if not (spec.url or self._resolver) and instance not in self._instances.values():
                raise UnknownName("tokens", url, set(self._instances.values()))
            tokens[instance] = token_of(token, f"tokens.{url}", headers)
        return tokens


def action_of(task: Task) -> dict[str, Json]:
    """A task as an instance takes it. Params never override what the task itself says."""
    said = {"kind": task.action, "ref": task.ref, "selector": task.selector}
    rest = {name: value for name, value in task.params.items() if name not in RESERVED}
    return {name: value for name, value in said.items() if value} | cast("dict[str, Json]", rest)


def _instance(url: object, field: str) -> str:
    """The address of an instance, always written alike, so that its token is found."""
    parsed_url: URL = check_address(url, field)
    if parsed_url.query or parsed_url.fragment:
        raise InvalidInput(field, "…", "an address without `?` and `#`: a path is added to it")
    return str(parsed_url).rstrip("/#?")
