"""Nodes, and which of them decides for which session."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias, TypeVar, cast

import msgspec

from headway.core.retry import HELD_FOR, LONGEST_DELAY
from headway.model.places import Glimpse, Holding, Order, Place
from headway.model.run import AgentName, LaneName, RunId, SessionKey
from headway.model.time import MINUTE, Instant, Span
from headway.model.words import Cut
from headway.ports import Claims, Hint, Peer, Renewal
from headway.store.codec import (
    decode_command,
    decode_memory,
    decode_run,
    decode_standing,
    encode_fields,
)
from headway.store.sqlite.database import Column, Database
from headway.store.sqlite.intake import lives, read_sessions
from headway.store.sqlite.node import Node

MOST_PLACES = 1_000
"""So much of one session is read at once; the rest comes as news. The SQL names one more."""

LEFT_ALONE_FOR = 5 * MINUTE
"""How long a session that this version cannot read is not claimed again."""
_MOST_URGENT = 100


def enlist(
    database: Database,
    node: Node,
    name: str,
    lease: Span,
    now: Instant,
    *,
    take_over: bool,
    host: str,
) -> int:
    """A new incarnation. With `take_over` all others are gone: the lock beside the file says so (N-21)."""
    counted = database.row("next_node")
    assert counted is not None
    number = cast(int, counted[0])
    if take_over:
        for peer, _, _ in database.rows("peers", 0):
            end_node(database, node, cast(int, peer), how="dead", now=now)
        if not node.id:
            # Nobody is on the way with them any more. A process that only comes back as a new incarnation is. What
            # is due before that may as well wait for another try.
            database.run("let_go_deliveries", now, now + LONGEST_DELAY + 1, now + HELD_FOR)
    database.run("add_node", number, name, now, lease, host, node.settings.adoption_grace)
    node.host = host
    return number


def renew(database: Database, node: Node) -> Renewal:
    alive = database.run("renew", node.id) == 1
    rows = cast(list[tuple[int, int, int]], database.rows("peers", node.id))
    return Renewal(alive, tuple(Peer(*row) for row in rows))


def end_node(
    database: Database,
    node: Node,
    gone: int,
    *,
    how: str,
    now: Instant,
    counter: int | None = None,
) -> bool:
    """Mark a node as ended and free what it held (N-4). False: it ended before, or its counter has moved."""
    if not database.run("end_node", how, now, gone, counter):
        return False
    node.counted_at = None
    database.run("orphan_attempts", now, gone)
    database.run("orphan_places", gone)
    if how == "dead":
        database.run("reserve", gone, now)
    database.run("drop_attempts", gone)
    database.run("drop_idle_of", gone)
    for (key,) in database.rows("sessions_owned", gone):
        freed = database.row("free_session", key, now)
        if freed is not None and freed[0]:
            node.hint_all(Hint.WORK)
            node.hint_me(Hint.WORK)
    if database.run("drop_slots", gone) + database.run("drop_wants", gone):
        node.hint_all(Hint.SLOTS)
        node.hint_me(Hint.SLOTS)
    if how == "dead":
        fields = encode_fields({"node": gone, "by": node.id})
        database.run("keep_event", now, "node_dead", fields)
    return True


def claim(
    database: Database,
    node: Node,
    room: Mapping[LaneName, int],
    agents: Sequence[AgentName],
    *,
    until: Instant,
    now: Instant,
) -> Claims:
    """Own what is ready, as much as there is room for, and what cannot wait."""
    if not lives(database, node):
        return Claims()
    names = msgspec.json.encode(list(agents)).decode()
    node.unreadable = {key: until for key, until in node.unreadable.items() if until > now}
    urgent = database.rows("urgent_sessions", now, _MOST_URGENT + len(node.unreadable))
    own = database.rows("reserved_sessions", node.host, names, _MOST_URGENT) if node.host else []
    found = dict.fromkeys(cast(str, key) for (key,) in (*urgent, *own))
    keys = [key for key in found if key not in node.unreadable]
    # There may be more that needs no room: whoever asks does so again at once.
    again = len(keys) >= _MOST_URGENT
    order = {agent: place for place, agent in enumerate(agents)}
    ready, more = _ready(database, room, order, until, now, {*keys, *node.unreadable})
    keys += ready
    holdings = _own(database, node, [SessionKey(key) for key in keys], now) if keys else ()
    next_at = now + 1 if again else _next_at(database, names, until, now)
    return Claims(holdings, next_at, more)


def _own(
    database: Database, node: Node, keys: Sequence[SessionKey], now: Instant
) -> tuple[Holding, ...]:
    """Take these sessions; then, and only then, read what is in them (N-8)."""
    counters = database.row("counters")
    assert counters is not None
    number, epoch = cast(tuple[int, int], counters)
    database.run("set_counters", number, epoch + len(keys))
    database.write("own", [(key, node.id, epoch + place) for place, key in enumerate(keys, 1)])
    rows = read_sessions(database, keys)
    asked = [Asked(key, rows[key].epoch, 0, rows[key].last_seq, rows[key].memory) for key in keys]
    holdings = read_holdings(database, asked)
    for key in {entry.session for entry in asked} - {holding.session for holding in holdings}:
        # Something in it was written by a newer version: who understands it may have it (N-20).
        database.run("disown", key)
        node.unreadable[key] = now + LEFT_ALONE_FOR
    return tuple(holdings)


def _ready(  # noqa: PLR0917 - all that a claim goes by
    database: Database,
    room: Mapping[LaneName, int],
    order: Mapping[AgentName, int],
    until: Instant,
    now: Instant,
    taken: set[str],
) -> tuple[list[str], bool]:
    """Sessions by lane: one of each agent in turn, the agents in the order given, the lowest rank first."""
    chosen: list[str] = []
    more = False
    lines: dict[LaneName, list[tuple[int, int, int, int, str]]] = {}
    for lane, agent in cast(list[tuple[LaneName, AgentName]], database.rows("ready_pairs")):
        free = room.get(lane, 0)
        if free <= 0 or agent not in order:
            continue
        limit = free + 1 + len(taken)
        found = cast(
            list[tuple[int, int, str]],
            database.rows("ready_sessions", lane, agent, until, now, limit),
        )
        left = [row for row in found if row[2] not in taken]
        lines.setdefault(lane, []).extend(
            (turn, order[agent], *row) for turn, row in enumerate(left)
        )
    for lane, line in lines.items():
        line.sort()
        free = room[lane]
        chosen += [key for *_, key in line[:free]]
        more = more or len(line) > free
    return chosen, more


def _next_at(database: Database, names: str, until: Instant, now: Instant) -> Instant | None:
    found = (
        database.row("next_due", until, names),
        database.row("next_deadline", now),
        database.row("next_reserved", now, names),
    )
    return min((cast(int, row[0]) for row in found if row is not None), default=None)


class Asked(NamedTuple):
    """A session to be read: what stands behind a number."""

    session: SessionKey
    epoch: int
    after: int
    last_seq: int
    memory: str | None


_SessionRow: TypeAlias = tuple[int | None, str | None, Instant | None, int, int, str | None]
"""Owner, the machine that it is reserved for, until when, epoch, last number, memory."""


class _PlaceRow(msgspec.Struct, array_like=True, gc=False):
    session: SessionKey
    seq: int
    body: str
    attempt: int
    standing: str | None
    orphaned: int
    started_at: Instant | None
    cut: Cut | None
    host: str | None = None

    def place(self) -> Place:
        standing = None if self.standing is None else decode_standing(self.standing)
        return Place(
            decode_run(self.body),
            self.seq,
            self.attempt,
            standing,
            bool(self.orphaned),
            self.started_at,
            self.cut,
            self.host or "",
        )


class _OrderRow(msgspec.Struct, array_like=True, gc=False):
    session: SessionKey
    seq: int
    id: str
    command: str

    def order(self) -> Order:
        return Order(self.id, self.session, decode_command(self.command), self.seq)


_Row = TypeVar("_Row", _PlaceRow, _OrderRow)

_read_places = msgspec.json.Decoder(list[_PlaceRow]).decode
_read_orders = msgspec.json.Decoder(list[_OrderRow]).decode


def read_holdings(database: Database, asked: Sequence[Asked]) -> list[Holding]:
    """What is in these sessions, as much as is read at once. One that this version cannot read is left out."""
    rows = [(entry.session, entry.after) for entry in asked]
    places = _by_session(_read_places, database.read("places", rows))
    orders = _by_session(_read_orders, database.read("open_orders", rows))
    holdings: list[Holding] = []
    for entry in asked:
        key = entry.session
        try:
            holdings.append(_holding(database, entry, places.get(key, []), orders.get(key, [])))
        except msgspec.ValidationError:
            continue
    return holdings


def _by_session(
    read: Callable[[str], list[_Row]], found: list[tuple[Column, ...]]
) -> dict[SessionKey, list[_Row]]:
    rows: dict[SessionKey, list[_Row]] = {}
    for (text,) in found:
        for row in read(cast(str, text)):
            rows.setdefault(row.session, []).append(row)
    for line in rows.values():
        # Not by number: of runs under one number the order of their standing decides.
        line.sort(key=lambda row: row.seq)
    return rows


def _holding(
    database: Database, asked: Asked, places: list[_PlaceRow], orders: list[_OrderRow]
) -> Holding:
    seen = asked.last_seq
    cut_off = [line[-1].seq for line in (places, orders) if len(line) > MOST_PLACES]
    if cut_off:
        # Up to the last number that is whole: a merged run stands under the number of another one.
        seen = max(min(cut_off) - 1, asked.after + 1)
        places = [row for row in places if row.seq <= seen]
        orders = [row for row in orders if row.seq <= seen]
    if seen < asked.last_seq and not asked.after:
        for (text,) in database.rows("merged_places", asked.session, seen):
            places += _read_places(cast(str, text))
    return Holding(
        asked.session,
        asked.epoch,
        seen,
        None if asked.memory is None else decode_memory(asked.memory),
        tuple(row.place() for row in places),
        tuple(row.order() for row in orders),
        seen < asked.last_seq,
    )


def glimpse(database: Database, session: SessionKey) -> Glimpse | None:
    """What is in a session and who decides for it, all as of one moment."""
    with database.one_moment():
        row = database.row("glimpse", session)
        if row is None:
            return None
        owner, host, until, epoch, last_seq, memory = cast(_SessionRow, row)
        held = read_holdings(database, [Asked(session, epoch, 0, last_seq, memory)])
        running = cast(list[tuple[str]], database.rows("running_in", session))
        return Glimpse(
            held[0] if held else Holding(session, epoch, last_seq),
            tuple(RunId(run_id) for (run_id,) in running),
            owner or 0,
            host or "",
            until,
        )


def news(
    database: Database, node_id: int, seen: Mapping[SessionKey, int], *, complete: bool
) -> list[Holding]:
    """What came into sessions of this node after what it has seen, all as of one moment."""
    if not node_id:
        return []
    with database.one_moment():
        found = database.read("with_news", list(seen.items()), after=(node_id,))
        if complete:
            found += [row for row in database.rows("owned", node_id) if row[0] not in seen]
        rows = cast(list[tuple[SessionKey, int, int, str | None, int]], found)
        asked = [
            Asked(key, epoch, after, last_seq, memory)
            for key, epoch, last_seq, memory, after in rows
        ]
        return read_holdings(database, asked) if asked else []


def hold_slots(database: Database, node: Node, lane: LaneName, limit: int, count: int) -> int:
    """Take or give back until so many are held, unless another node has waited longer for one (N-18)."""
    if not lives(database, node):
        return 0
    rows = cast(list[tuple[int, int]], database.rows("taken_slots", lane))
    held = sum(holder == node.id for _, holder in rows)
    if held > count:
        database.run("give_slots", lane, node.id, held - count)
        for (wanting,) in database.rows("wanting", lane, node.id):
            node.hint(cast(int, wanting), Hint.SLOTS)
        held = count
    elif held < count and not _waits_longer(database, node, lane):
        taken = {slot for slot, _ in rows}
        room = max(0, limit - len(taken))
        free = [slot for slot in range(limit) if slot not in taken][: min(count - held, room)]
        for slot in free:
            database.run("take_slot", lane, slot, node.id)
        held += len(free)
        if free:
            # Who got something goes to the end of the line.
            database.run("want_no_slot", lane, node.id)
    if held < count:
        database.run("want_slot", lane, node.id)
        for holder in {holder for _, holder in rows}:
            node.hint(holder, Hint.SLOTS)
    else:
        database.run("want_no_slot", lane, node.id)
    return held


def _waits_longer(database: Database, node: Node, lane: LaneName) -> bool:
    found = database.row("waits_longer", lane, node.id)
    return found is not None and bool(found[0])
