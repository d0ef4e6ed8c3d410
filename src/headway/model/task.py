"""What a program asks of an agent by the task API, beside what every run has (T-1)."""

import msgspec

from headway.model.value import Value


class Task(Value, frozen=True):
    """An action and what it is about. The agent's runner knows what to make of it."""

    action: str
    tab_id: str = ""
    selector: str = ""
    ref: str = ""
    params: dict[str, object] = msgspec.field(default_factory=dict)
    """As JSON holds it."""
