"""The page of RPC, from what `rpc.discover` answers."""

from collections.abc import Mapping
from typing import cast

from headway.gateway.rpc.discover import discovery
from headway.gateway.rpc.methods import METHODS
from headway.model.events import CATALOGUE
from headway.model.telling import kind_of
from tools.reference.schemas import Schema, anchor, linked, schema_lines
from tools.reference.tables import NOTE, cell, code, table

_INTRO = """\
A WebSocket at `/rpc` takes calls as text frames of JSON and answers each by its `id`, as soon as it can;
answers need not come in the order of the calls. A token goes into the header `Authorization: Bearer hw_…`, or
where a browser can set none into `?access_token=`.

```json
{"id": 1, "method": "tasks.get", "params": {"taskId": "1k3f9a2xq-42"}}
{"id": 1, "result": {"taskId": "1k3f9a2xq-42", "state": "running"}}
{"id": 2, "error": {"error": "…", "code": "not_found", "retryable": false, "details": {}}}
```

Errors are those of [HTTP](http.md#refusals); what HTTP says in `Retry-After` is `retryAfter` beside the error.
`rpc.discover` answers what is on this page, for programs."""

_FRAMES = """\
These come without being asked for by a call of their own. Those of the [catalogue](events.md) come after
`events.subscribe`, as `{"event": "RunStarted", "id": "…", "data": {…}}`; the `id` is what a client that comes
back says as `after`."""


def rpc_page() -> str:
    found = discovery(METHODS.values())
    lines = ["# RPC", "", NOTE, "", _INTRO, "", "## Methods", ""]
    lines += table(
        ("method", "scope", "what it does"),
        [
            (
                f"[`{one.name}`](#{anchor(one.name)})",
                code(one.scope) if one.scope else "",
                cell(one.summary.partition("\n")[0]),
            )
            for one in found.methods
        ],
    )
    for one in found.methods:
        lines += ["", f"### `{one.name}`", "", one.summary, ""]
        lines += [
            f"Takes {linked(cast(Schema, one.params))}, answers {linked(cast(Schema, one.result))}."
        ]
        if one.scope:
            lines += [f"Needs the scope `{one.scope}`."]
    lines += ["", "## Frames", "", _FRAMES, ""]
    told = {kind_of(event) for event in CATALOGUE}
    lines += table(
        ("frame", "when", "data"),
        [
            (code(one.event), cell(one.summary.partition("\n")[0]), linked(cast(Schema, one.data)))
            for one in found.frames
            if one.event not in told
        ],
    )
    lines += ["", "## What is sent", "", "Each struct by its name."]
    lines += schema_lines(cast(Mapping[str, Schema], found.schemas))
    return "\n".join(lines) + "\n"
