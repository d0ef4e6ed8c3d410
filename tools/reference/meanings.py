"""What names mean that the code does not say, so that the pages can."""

from collections.abc import Mapping

MEANINGS: Mapping[str, str] = {
    "RunSubmitted": "A run was asked for. It is kept by the store; it may still be refused.",
    "RunStarted": "An attempt begins.",
    "RunFinished": "A run has its one outcome.",
    "RunsMerged": "Several messages became one run.",
    "OutputEmitted": "A turn emitted a piece of output.",
    "TokensUsed": "A turn reported tokens.",
    "SessionStopped": "A `/stop` or `/stopall` was carried out, and reached so many runs.",
    "LaneChanged": "A lane was made, or has a new width or reserve.",
    "LaneCleared": "All that waited in a lane was ended.",
    "LimitsChanged": "The limits for tasks are these from now on.",
    "NodeDraining": "The node takes nothing new; so many attempts still run.",
    "NodeRestarted": "The node came back in place, as a new incarnation.",
    "Settings.lanes": "The lanes that exist from the start; others can be made later with `set_lane`.",
    "Settings.queue": "The queue of every session, unless something closer says otherwise.",
    "Settings.channels": "Queue options for messages of one channel, by its name (`Route.channel`).",
    "Settings.agents": "Settings of agents by name; what `hw.agent` says comes on top.",
    "Settings.limits": "Limits for tasks.",
    "Settings.ageing": "A waiting run gains one step of priority in this time.",
    "Settings.cancel_grace": "How long a cancelled attempt may take to return before it is left behind.",
    "Settings.drain_grace": "How long running work may take to finish when the node drains.",
    "Settings.wait_notice": "A run that waited longer says so when it starts (`RunWaited`, `on_wait`).",
    "Settings.throttle_ratio": "From this part of its context window on, a session runs one at a time.",
    "Settings.dedupe": "How long a message id is remembered, so that it is not taken twice.",
    "Settings.idempotency": "How long an idempotency key is remembered.",
    "Settings.retention": "How long a finished run is kept, unless it is a task.",
    "Settings.task_retention": "How long a finished task is kept.",
    "LaneSettings.width": "How many runs go at once; 0 pauses the lane.",
    "LaneSettings.reserve": "So many slots are for interactive work only (priority below 10).",
    "LaneSettings.budget": "Runs and tokens per minute for the whole lane.",
    "Budget.runs_per_minute": "Starts per minute.",
    "Budget.tokens_per_minute": "Tokens per minute, as turns report them with `turn.usage`.",
    "QueueSettings.mode": "What a message does while its session is busy.",
    "QueueSettings.cap": "How many messages may wait in one session.",
    "QueueSettings.drop": "Who gives way when the cap is reached.",
    "QueueSettings.debounce": (
        "How long to wait for more text. Counts for messages with a route; others use 0 unless they say."
    ),
    "QueueSettings.steer_fallback": "What a steering message does if the turn cannot be steered.",
    "QueueSettings.max_concurrent": "How many runs of one session go at once.",
    "Limits.max_queue": "Tasks that may wait in all.",
    "Limits.max_queue_per_agent": "Tasks of one agent that may wait.",
    "Limits.max_inflight": "Tasks that run at once in all.",
    "Limits.max_inflight_per_agent": "Tasks of one agent that run at once.",
    "AgentOptions.weight": "Its share of starts beside other agents that have work.",
    "AgentOptions.steerable": "Its turns look into `turn.inbox`.",
    "AgentOptions.preemptible": "Its background turns give way to waiting interactive ones.",
    "AgentOptions.provider": "A key towards its model provider; agents with the same one share rate limits.",
    "AgentOptions.max_inflight": "Tasks of this agent at once, instead of `max_inflight_per_agent`.",
    "AgentOptions.runs_per_minute": "Its budget of starts.",
    "AgentOptions.tokens_per_minute": "Its budget of tokens.",
    "AgentOptions.lane": "The lane of its runs, unless a run names one.",
    "AgentOptions.timeout": "The bound on each of its attempts.",
    "AgentOptions.max_attempts": "Attempts in all, where crashes or drains cut some. Errors: see `retries`.",
    "AgentOptions.retries": "How often an attempt that failed or took too long is tried again.",
    "AgentOptions.resume_after": "When its worker died, the next try is so long after the last one, or later.",
    "SubmitOptions.session": "Runs of one session keep their order. Without it: from the route, else its own.",
    "SubmitOptions.source": "What the run is; tasks have limits and a deadline.",
    "SubmitOptions.lane": "The lane it counts in; an unknown name means `main`.",
    "SubmitOptions.priority": "Lower starts first; from 10 on it is background work.",
    "SubmitOptions.attachments": "What travels with the text.",
    "SubmitOptions.route": "Where the message came from and its reply goes.",
    "SubmitOptions.sender": "Who wrote it, and with which authority.",
    "SubmitOptions.message_id": "The channel's id of the message: it is not taken twice.",
    "SubmitOptions.sent_at": "When it was written; tells whether a `/stopall` came later.",
    "SubmitOptions.due": "Not to start before: an instant, or a span from now.",
    "SubmitOptions.deadline": "Ended if it is not done by then: an instant, or a span from when it is due.",
    "SubmitOptions.timeout": "The bound on each of its attempts.",
    "SubmitOptions.mode": "What it does while its session is busy.",
    "SubmitOptions.cap": "How many messages may wait in the session.",
    "SubmitOptions.drop": "Who gives way when the cap is reached.",
    "SubmitOptions.debounce": "How long to wait for more text of the same sender.",
    "SubmitOptions.steer_fallback": "What steering becomes if the turn cannot be steered.",
    "SubmitOptions.max_concurrent": "How many runs of the session may go at once beside it.",
    "SubmitOptions.max_attempts": "Attempts in all, where crashes or drains cut some. Errors: see `retries`.",
    "SubmitOptions.retries": "How often an attempt that failed or took too long is tried again.",
    "SubmitOptions.preemptible": "If it is background work, it gives way to waiting interactive work.",
    "SubmitOptions.trace_id": "Handed to the agent as `turn.trace_id`.",
    "SubmitOptions.task": "What a program asks for beside or instead of a text; the source is then `task`.",
    "SubmitOptions.traceparent": "The span of whoever asks (W3C Trace Context); spans of the run continue it.",
    "SubmitOptions.resumes": "The run whose agent session it goes on with; `hw.resume` says it.",
    "SubmitOptions.callback": "The address that is told, by a signed notice, how a task ended.",
    "SubmitOptions.idempotency_key": "A second submission with the same key gives the first run.",
    "SubmitOptions.on_repeat": (
        "What a repeated key gives if the first run did not succeed: its outcome, or another try."
    ),
    "JobFields.cron": "It fires when the wall clock of `tz` matches; also `@daily`, `@every 10m`.",
    "JobFields.every": "It fires after each period, counted from when the job was made, without drift.",
    "JobFields.at": "It fires once: at what a person means, at a `datetime`, or after a `timedelta`.",
    "JobFields.schedule": "One of these as a value, or as it stands in JSON.",
    "JobOptions.text": "What the agent is told.",
    "JobOptions.command": "A command to run, without a shell; the agent must be one of `hw.commands`.",
    "JobOptions.function": "The name of a function (`hw.function`): what it returns is what the agent is told.",
    "JobOptions.tz": "The time zone that the schedule means.",
    "JobOptions.lane": "The lane that its runs count in; none: its agent's, else `cron`.",
    "JobOptions.session": "`isolated`: a fresh one for each firing; `job`: one for all; else a key.",
    "JobOptions.timeout": "The bound on each attempt; none: its agent's, else 1h.",
    "JobOptions.retries": (
        "How often an attempt that failed or took too long is tried again; none: its agent's, else 3."
    ),
    "JobOptions.max_attempts": (
        "Attempts in all, where crashes or drains cut some; none: its agent's, else 1."
    ),
    "JobOptions.priority": "Lower starts first; from 10 on it is background work; none: 10.",
    "JobOptions.overlap": "What a firing does while an earlier one is unfinished.",
    "JobOptions.misfire": "What becomes of firings that were missed.",
    "JobOptions.misfire_window": "What was missed longer ago is never made up for.",
    "JobOptions.stagger": "Each firing is later by a part of this that a hash of the job's id decides.",
    "JobOptions.deliver": "Where the reply goes.",
    "JobOptions.delete_after_run": "Whether it fires once, and goes when that has ended well.",
    "JobOptions.gate": "A function or a command that is asked first whether to wake the agent (X-7).",
    "JobOptions.enabled": "Whether it fires at all.",
    "HeartbeatOptions.every": "How often the agent is woken.",
    "HeartbeatOptions.prompt": "What it is told; without one it is told to look after its checklist.",
    "HeartbeatOptions.hours": "When it may be woken: from the start to before the end, over midnight too.",
    "HeartbeatOptions.tz": "The time zone of the hours; none: that of the settings.",
    "HeartbeatOptions.target": (
        "Who hears it: `last`, where the agent's latest message came from; `none`; or a route."
    ),
    "HeartbeatOptions.checklist": "The path of HEARTBEAT.md; without one its text is kept in the store.",
    "HeartbeatOptions.ack_max_chars": "So many characters beside HEARTBEAT_OK are still silence (H-3).",
    "HeartbeatOptions.lane": "The lane that its runs count in; none: its agent's, else `cron`.",
    "HeartbeatOptions.session": "`main`: the agent's own; `isolated`: a fresh one each time; else a key.",
    "HeartbeatOptions.timeout": "The bound on each attempt; none: its agent's, else 1h.",
}


class NoMeaning(LookupError):
    """A name that a page lists has neither a docstring nor an entry in `MEANINGS`."""


def meaning_of(name: str, docstring: str | None) -> str:
    """What a name means, on one line: as the code says, else as `MEANINGS` does."""
    if docstring:
        return " ".join(docstring.split())
    if name not in MEANINGS:
        raise NoMeaning(f"say what {name} means, in its docstring or in {__name__}")
    return MEANINGS[name]
