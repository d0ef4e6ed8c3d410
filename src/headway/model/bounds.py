"""Numbers and lengths of time that settings are made of, with their bounds."""

from typing import Annotated, TypeAlias

from msgspec import Meta

from headway.model.time import Span

Count: TypeAlias = Annotated[int, Meta(ge=0, le=1_000_000_000)]
Positive: TypeAlias = Annotated[int, Meta(ge=1, le=1_000_000_000)]
Length: TypeAlias = Annotated[Span, Meta(ge=0)]
