"""What `headway serve` says before it begins."""

import gc
from collections.abc import Coroutine
from pathlib import Path

import pytest

from headway import Headway
from headway.cli.serve import assembling
from headway.cli.serve.assembling import Asked, serve_as_asked


@pytest.mark.parametrize(("known", "warned"), [((), True), (("codign",), False)])
def test_l1_an_agent_in_a_lane_that_is_not_there_is_warned_about(
    known: tuple[str, ...],
    warned: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "headway.toml"
    file.write_text('[agents.echo]\nlane = "codign"\n[lanes]\ncoding = 1\n')
    monkeypatch.setattr(gc, "freeze", lambda: None)
    monkeypatch.setattr(gc, "set_threshold", lambda _: None)
    monkeypatch.setattr(assembling, "run", Coroutine.close)
    made = Headway("memory://", lanes=dict.fromkeys(known, 1))
    monkeypatch.setattr(assembling, "find_headway", lambda _: made)
    store = f"sqlite:///{tmp_path}/work.db"
    serve_as_asked(
        Asked(
            agents="mine:hw",
            commands=False,
            demo=False,
            name=None,
            config=str(file),
            flags={"store": store},
        )
    )
    told = capsys.readouterr().err
    assert ("there is no lane 'codign', so its runs go to 'main'" in told) is warned
    assert ("did you mean 'coding'?" in told) is warned
