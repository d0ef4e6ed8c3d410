"""A schedule from one text, as people try it out: a cron expression, `every 10m`, or a time."""

import re

from headway.core import job_fields
from headway.core import schedule as schedules
from headway.core.spoken import read_time
from headway.model.errors import InvalidInput
from headway.model.schedule import Schedule
from headway.model.time import Instant

_EVERY = re.compile(r"every\s+(\S+)", re.IGNORECASE)
_NO_HOUR = re.compile(r"[A-Za-z:]")
FIELD = "expression"
OR_ELSE = "or a cron expression, a period such as 'every 10m', or a job"


class NoExpression(InvalidInput):
    """The text is neither a cron expression nor a period nor a time; it may still name a job."""


def read_expression(text: str, zone: str, now: Instant) -> Schedule:
    """The schedule that a text means in a zone. Raises `NoExpression` if it may mean something else."""
    words = text.split()
    if found := _EVERY.fullmatch(text.strip()):
        return schedules.every(found[1], zone, now, field=FIELD)
    if _is_cron(words):
        return schedules.cron(text, zone, now, FIELD)
    try:
        return job_fields.at(text, zone, now, FIELD)
    except InvalidInput as wrong:
        if wrong.field != FIELD or _is_time(text, zone, now):
            raise
        raise NoExpression(FIELD, text, wrong.allowed) from None


def _is_cron(words: list[str]) -> bool:
    """Whether it is meant as a cron expression, right or wrong: a time never begins with two bare numbers."""
    if words and words[0].startswith("@"):
        return True
    return "*" in "".join(words) or (
        len(words) == 5 and not any(_NO_HOUR.search(word) for word in words[:2])
    )


def _is_time(text: str, zone: str, now: Instant) -> bool:
    """Whether it is a time, though one that has passed."""
    try:
        read_time(text, now, zone)
    except InvalidInput:
        return False
    return True
