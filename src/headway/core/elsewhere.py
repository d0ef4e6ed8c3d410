"""Why does it wait, of a session that another node decides for, or none yet (X-1).

The session is put together from what is stored, as a new owner would do it, in a kernel that starts nothing. So
it is asked by the very rules that its node goes by. What lanes and limits say, that node alone knows.
"""

import msgspec

from headway.core.kernel import Kernel
from headway.core.why import Held, holding_rule
from headway.model.places import Glimpse, Place
from headway.model.run import RunId
from headway.model.settings import Settings
from headway.model.time import Instant
from headway.model.views import RunView, Why
from headway.model.words import Rule

_STORED = frozenset(
    {
        Rule.NOT_DUE,
        Rule.DEBOUNCE,
        Rule.RETRY,
        Rule.COLLECTING,
        Rule.SESSION_BUSY,
        Rule.SESSION_ORDER,
    }
)
"""What its session says of a run, or its own time."""
_NOWHERE: Held = (Rule.ELSEWHERE, None, None)


class SessionElsewhere:
    """A session as it was stored at one moment, and what that says about its runs."""

    def __init__(self, settings: Settings, glimpse: Glimpse | None, now: Instant) -> None:
        self._glimpse = glimpse
        self._now = now
        self._places: dict[RunId, Place] = {}
        self._kernel = Kernel(_standing_still(settings), now)
        if glimpse is not None:
            self._places = {place.run.id: place for place in glimpse.holding.places}
            kept = tuple(
                _as_it_goes(place, glimpse)
                for place in self._places.values()
                if not self._is_steered(place)
            )
            # Whatever is ordered, its owner will do.
            holding = msgspec.structs.replace(glimpse.holding, places=kept, orders=())
            self._kernel.restore(holding, now)

    def runs(self, run_id: RunId) -> bool:
        return self._glimpse is not None and run_id in self._glimpse.running

    def why(self, view: RunView, here: int = 0) -> Why:
        """Which rule holds this run. `here` is the number of the node that tells it."""
        run, glimpse = view.run, self._glimpse
        rule, until, by = self._rule(view)
        owner = 0 if glimpse is None else glimpse.owner
        if rule is Rule.ELSEWHERE and owner and owner == here:
            # It came by another node, and this one takes it in within a moment.
            rule = Rule.STARTING
        waits_for = glimpse.reserved_for if glimpse and rule is Rule.ADOPTION else None
        return Why(
            run.id,
            view.state,
            rule,
            until,
            by,
            run.lane,
            run.agent,
            run.session,
            node=owner if owner != here and owner else None,
            machine=waits_for,
        )

    def _rule(self, view: RunView) -> Held:
        run, glimpse = view.run, self._glimpse
        place = self._places.get(run.id)
        if glimpse is None:
            return _NOWHERE
        if place is None:
            return self._rule_of_one_far_behind(view, glimpse)
        if self._is_steered(place):
            return Rule.STEERED, None, glimpse.running[0]
        reserved_until = glimpse.reserved_until
        if place.orphaned and reserved_until is not None and reserved_until > self._now:
            return Rule.ADOPTION, reserved_until, None
        live = self._kernel.stage.runs.get(run.id)
        if live is None or live.ticket:
            return _NOWHERE
        rule, until, by = holding_rule(self._kernel, live)
        if rule is Rule.SESSION_BUSY:
            by = glimpse.running[0] if glimpse.running else by
        return (rule, until, by) if rule in _STORED else _NOWHERE

    def _rule_of_one_far_behind(self, view: RunView, glimpse: Glimpse) -> Held:
        """It was not read, as so many others wait; or it has just ended."""
        due_at = view.run.due_at
        if due_at is not None and due_at > self._now:
            return Rule.NOT_DUE, due_at, None
        session = self._kernel.stage.sessions.get(view.run.session)
        if not glimpse.holding.more or session is None or not session.waiting:
            return _NOWHERE
        return Rule.SESSION_ORDER, None, session.waiting[0].run.id

    def _is_steered(self, place: Place) -> bool:
        """Whether the running turn has it, or was offered it: which of both is not stored."""
        standing, glimpse = place.standing, self._glimpse
        steered = standing is not None and standing.held is Rule.STEERED
        return steered and glimpse is not None and bool(glimpse.running)


def _standing_still(settings: Settings) -> Settings:
    """The same settings, and no lane in which anything could start."""
    lanes = {
        name: msgspec.structs.replace(lane, width=0, reserve=0)
        for name, lane in settings.lanes.items()
    }
    return msgspec.structs.replace(settings, lanes=lanes)


def _as_it_goes(place: Place, glimpse: Glimpse) -> Place:
    """A run that runs goes on, as one does whose worker was found."""
    if place.run.id not in glimpse.running:
        return place
    return msgspec.structs.replace(
        place, adopted=True, orphaned=False, attempt=max(1, place.attempt)
    )
