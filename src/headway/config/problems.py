"""What can be wrong with settings: each problem says where it stands, what is allowed, what may be meant."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from headway.model.errors import InvalidInput, Refused, UnknownOption


class UnknownSetting(UnknownOption):
    """A key or a section that does not exist. `close` is what may have been meant, here or in another section."""

    def __init__(
        self, where: str, key: str, known: Iterable[str], elsewhere: Iterable[str] = ()
    ) -> None:
        names = sorted(known)
        super().__init__(key, names)
        self.close = _suggestions(key, names, sorted(elsewhere))
        hint = (
            f"did you mean {self.close[0]!r}?" if self.close else f"there are: {', '.join(names)}"
        )
        self.args = (f"{where}: {key!r} is not a setting; {hint}",)


class NotToml(InvalidInput):
    """A file that cannot be read at all. The line is not repeated: it may hold a password."""

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(where, reason, "TOML")
        self.args = (f"{where}: this is not TOML: {reason}",)


class ConfigRefused(Refused):
    """Several settings are wrong at once."""

    code = "config_refused"

    def __init__(self, problems: Sequence[InvalidInput]) -> None:
        self.problems = tuple(problems)
        listed = "".join(f"\n  {problem}" for problem in problems)
        super().__init__(f"{len(problems)} settings are wrong:{listed}")


def refuse_if(problems: Sequence[InvalidInput]) -> None:
    """Raise what is wrong, if something is."""
    if len(problems) == 1:
        raise problems[0]
    if problems:
        raise ConfigRefused(problems)


def _suggestions(written: str, known: Sequence[str], elsewhere: Sequence[str]) -> list[str]:
    """At most one: the closest name here, else what is called so, or nearly so, in another section."""
    if close := get_close_matches(written, known, n=1, cutoff=0.8):
        return close
    lasts = {name.rpartition(".")[2]: name for name in reversed(elsewhere)}
    last = get_close_matches(written.rpartition(".")[2], lasts, n=1, cutoff=0.7)
    return [lasts[name] for name in last] or get_close_matches(written, known, n=1)
