"""What is said about how an agent is run, looked at before anything is run: are its templates sound?"""

from headway.core.template import check_json, check_template
from headway.model.errors import InvalidInput, UnknownName
from headway.model.outcome import Json
from headway.model.runner import ChatSpec, CommandSpec, HttpSpec, PaneSpec, RunnerSpec, TabsSpec

METHODS = frozenset({"DELETE", "GET", "PATCH", "POST", "PUT"})


def check_spec(spec: RunnerSpec, prefix: str = "") -> RunnerSpec:
    """The same, or `InvalidInput` that names the field; `prefix` says whose field it is."""
    match spec:
        case CommandSpec():
            _check_command(spec, prefix)
            check_template(spec.stdin, f"{prefix}stdin")
        case PaneSpec():
            if not spec.command:
                raise InvalidInput(f"{prefix}command", (), "a program and its arguments")
            _check_command(spec, prefix)
        case HttpSpec():
            _check_address(spec.url, f"{prefix}url")
            if spec.method.upper() not in METHODS:
                allowed = f"one of: {', '.join(sorted(METHODS))}"
                raise InvalidInput(f"{prefix}method", spec.method, allowed)
            body: Json = spec.body  # type: ignore[assignment]  # as JSON holds it
            check_json(body, f"{prefix}body")
        case TabsSpec():
            for tab, url in spec.instances.items():
                _check_address(url, f"{prefix}instances.{tab}")
            if spec.url:
                _check_address(spec.url, f"{prefix}url")
        case ChatSpec():
            _check_address(spec.url, f"{prefix}url")
            check_template(spec.system, f"{prefix}system")
    return spec


def _check_command(spec: CommandSpec | PaneSpec, prefix: str) -> None:
    for field, argv in (("command", spec.command), ("resume", spec.resume)):
        for index, part in enumerate(argv):
            check_template(part, f"{prefix}{field}[{index}]")
    check_template(spec.folder, f"{prefix}folder")
    for name, value in spec.environment.items():
        if not name or "=" in name or "\0" in name:
            raise InvalidInput(f"{prefix}environment", name, "names of variables, without '='")
        _check_secretly(value, f"{prefix}environment.{name}")


def _check_secretly(value: str, field: str) -> None:
    """A template that may be a secret: what is wrong with it is said without it."""
    try:
        check_template(value, field)
    except UnknownName:
        raise
    except InvalidInput as wrong:
        raise InvalidInput(field, "…", wrong.allowed) from None


def _check_address(url: str, field: str) -> None:
    check_template(url, field)
    if not url.startswith(("http://", "https://")):
        raise InvalidInput(field, url, "an address that begins with http:// or https://")
