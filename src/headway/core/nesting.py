"""How deep JSON may nest: what can just be read with a shallow stack could not be read again with a deeper one."""

MAX_LEVELS = 100
_MOST_AT_A_LEVEL = 1_000_000
_HOLDERS = (dict, list, tuple, set, frozenset)


def nests_too_deep(value: object) -> bool:
    """Whether a value has more levels than every reader can take. Asked without recursion."""
    if isinstance(value, dict) and not any(isinstance(inner, _HOLDERS) for inner in value.values()):
        # So most are, and each task is asked.
        return False
    level = [value]
    for _ in range(MAX_LEVELS):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else _items(outer))
            if isinstance(inner, _HOLDERS)
        ]
        if not level:
            return False
        if len(level) > _MOST_AT_A_LEVEL:
            # What contains itself more than once.
            return True
    return True


def _items(value: object) -> "list[object] | tuple[object, ...]":
    return tuple(value) if isinstance(value, _HOLDERS) else ()
