"""Chat commands are recognised in any case, with or without a bot's name (S-5, S-9)."""

import pytest

from headway.core.commands import (
    Command,
    QueueClear,
    QueueReset,
    QueueSet,
    QueueStatus,
    Status,
    StopEverything,
    StopOne,
    parse,
)
from headway.model.errors import InvalidInput
from headway.model.run import QueueOptions
from headway.model.time import SECOND
from headway.model.words import Drop, Mode, SteerFallback


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("/stop", StopOne()),
        ("/STOP", StopOne()),
        ("  /Stop \n", StopOne()),
        ("/stop@botname", StopOne()),
        ("/stopall", StopEverything()),
        ("/StopAll@Bot_Name", StopEverything()),
        ("/status", Status()),
        ("/Status@bot", Status()),
        ("/queue", QueueStatus()),
        ("/queue status", QueueStatus()),
        ("/QUEUE@bot STATUS", QueueStatus()),
        ("/queue clear", QueueClear()),
        ("/queue reset", QueueReset()),
    ],
)
def test_s9_s5_commands_in_any_case_and_with_a_bots_name(text: str, command: Command) -> None:
    assert parse(text) == command


@pytest.mark.parametrize(
    "text",
    [
        "",
        "stop",
        "please /stop",
        "/stop now",
        "/stopp",
        "/status of what",
        "/stop all",
        "/stopall please",
        "//stop",
        "/ stop",
        "/queued",
        "/stop@",
        "/\u017ftop",
        "/\u017ftopall",
    ],
)
def test_s9_ordinary_text_is_no_command(text: str) -> None:
    assert parse(text) is None


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (
            "/queue collect debounce:2s cap:25 drop:summarize",
            QueueOptions(Mode.COLLECT, 25, Drop.SUMMARIZE, 2 * SECOND),
        ),
        (
            "/queue STEER steer_fallback:FollowUp",
            QueueOptions(Mode.STEER, steer_fallback=SteerFallback.FOLLOWUP),
        ),
        ("/queue mode:reject", QueueOptions(Mode.REJECT)),
        ("/queue debounce:0", QueueOptions(debounce=0)),
        ("/queue max_concurrent:3", QueueOptions(max_concurrent=3)),
        ("/queue\n interrupt \n cap:1", QueueOptions(Mode.INTERRUPT, 1)),
    ],
)
def test_s5_queue_options_by_chat(text: str, options: QueueOptions) -> None:
    assert parse(text) == QueueSet(options)


@pytest.mark.parametrize("mode", list(Mode))
def test_s5_every_mode_can_be_chosen(mode: Mode) -> None:
    assert parse(f"/queue {mode}") == QueueSet(QueueOptions(mode))


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("/queue colect", "queue"),
        ("/queue status now", "queue"),
        ("/queue collect clear", "queue"),
        ("/queue speed:9", "queue"),
        ("/queue cap:", "cap"),
        ("/queue cap:0", "cap"),
        ("/queue cap:-1", "cap"),
        ("/queue cap:many", "cap"),
        ("/queue cap:" + "9" * 5_000, "cap"),
        ("/queue drop:oldest", "drop"),
        ("/queue debounce:2", "debounce"),
        ("/queue debounce:2minutes", "debounce"),
        ("/queue steer_fallback:queue", "steer_fallback"),
        ("/queue max_concurrent:0", "max_concurrent"),
        ("/queue mode:loud", "mode"),
    ],
)
def test_s5_a_bad_option_is_refused_by_name(text: str, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse(text)
    assert refused.value.field == field
    assert refused.value.allowed
