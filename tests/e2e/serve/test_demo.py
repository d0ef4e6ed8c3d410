"""`headway serve --demo` without a keyboard: it is busy by itself, says what to try, and ends well."""

import json
from pathlib import Path

from tests.e2e.gateway.servers import Server
from tests.e2e.processes import Process, ended_at_last
from tests.e2e.serve.asking import tasks, until
from tests.ports import free_port


def test_the_demo_is_alive_and_ends_well(tmp_path: Path) -> None:
    environment = {"XDG_DATA_HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    port = free_port()
    command = ["headway", "serve", "--demo", "--port", str(port), "--grace", "50s"]
    process = Process("demo", command, tmp_path, environment)
    server = Server(process, port)
    with ended_at_last([process]), server.http:
        server.wait_until_ready()
        assert (tmp_path / "headway" / "demo.db").exists(), "it has a store of its own"
        process.wait_for("try, in another terminal:")
        process.wait_for(f"headway chat support --server http://127.0.0.1:{port}")
        until(lambda: bool(tasks(server, "done")), "a task was done")
        process.wait_for('"channel": "demo"')
        assert process.end() == 0
    lines = [line for line in process.printed.splitlines() if line.startswith("{")]
    assert {"RunStarted", "RunFinished"} <= {json.loads(line).get("event") for line in lines}
    assert "Traceback" not in process.printed
