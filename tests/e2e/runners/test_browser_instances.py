"""T-3 through a real `headway serve`: tasks by HTTP become actions in the tabs of two browser instances."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

from tests.e2e.gateway.servers import Server, serving
from tests.e2e.gateway.test_tasks import submit, until_state

AGENTS = "tests.e2e.runners.browsers:hw"
SECRET = "open-sesame"
_WITHIN_S = 60.0


class Instance(ThreadingHTTPServer):
    """Stands for a browser instance: it does what it is asked in its tabs, and remembers it."""

    daemon_threads = True

    def __init__(self, name: str, tabs: set[str], token: str = "") -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.name = name
        self.tabs = tabs
        self.token = token
        self.done: list[tuple[str, dict[str, object], dict[str, str]]] = []
        self.came = threading.Event()
        self.hung_up = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        instance = self.server
        assert isinstance(instance, Instance)
        _, kind, tab, verb = self.path.split("/")
        wanted = f"Bearer {instance.token}"
        if instance.token and self.headers["Authorization"] != wanted:
            return self._answer(401, {"error": "who are you?"})
        if (kind, verb) != ("tabs", "action") or tab not in instance.tabs:
            return self._answer(404, {"error": f"{instance.name} has no tab {tab}"})
        instance.done.append((tab, asked, {k.lower(): v for k, v in self.headers.items()}))
        instance.came.set()
        if asked["kind"] == "wait":
            # It never answers; it only sees when its caller hangs up.
            self.connection.settimeout(_WITHIN_S)
            if self.connection.recv(1) == b"":
                instance.hung_up.set()
            self.close_connection = True
            return None
        return self._answer(200, {"success": True, "by": instance.name, "tab": tab})

    def _answer(self, status: int, body: dict[str, object]) -> None:
        encoded = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(encoded)))
        self.end_headers()
        self.wfile.write(encoded)

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def running(instance: Instance) -> Iterator[Instance]:
    thread = threading.Thread(target=instance.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield instance
    finally:
        instance.shutdown()
        instance.server_close()
        thread.join(_WITHIN_S)


class World:
    """A server and the instances that it speaks with."""

    def __init__(self, server: Server, one: Instance, two: Instance) -> None:
        self.server = server
        self.one = one
        self.two = two

    def outcome(self, agent: str, tab: str, **fields: object) -> dict[str, object]:
        """How a task ends."""
        taken = submit(self.server, agent, tabId=tab, **fields)
        ended = until_state(self.server, taken["taskId"], "done", "failed", "cancelled")
        outcome = ended["outcome"]
        assert isinstance(outcome, dict)
        return outcome


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder: Path = tmp_path_factory.mktemp("browsers")
    open_one = Instance("one", {"news", "mail"})
    locked = Instance("two", {"bank", "locked"}, SECRET)
    with running(open_one), running(locked):
        tabs = {"news": open_one.url, "mail": open_one.url, "lost": open_one.url}
        tabs |= {"bank": locked.url, "locked": locked.url, "gone": "http://127.0.0.1:9"}
        environment = {"TEST_INSTANCES": json.dumps(tabs), "TEST_INSTANCE_TOKEN": SECRET}
        with serving(folder, agents=AGENTS, environment=environment) as server:
            yield World(server, open_one, locked)


@pytest.mark.parametrize("agent", ["browser", "finder"])
def test_t3_a_task_is_done_by_the_instance_that_owns_its_tab(world: World, agent: str) -> None:
    for tab, instance in (("news", world.one), ("bank", world.two), ("mail", world.one)):
        before = len(instance.done)
        params = {"button": "left", "kind": "eval", "tabId": "other"}
        outcome = world.outcome(agent, tab, ref="e5", selector="#buy", params=params)
        assert outcome["data"] == {"success": True, "by": instance.name, "tab": tab}
        ((did_in, asked, headers),) = instance.done[before:]
        assert did_in == tab
        assert asked == {"kind": "click", "ref": "e5", "selector": "#buy", "button": "left"}
        assert headers["x-agent-id"] == agent
        assert headers["x-request-id"].endswith(".1")
        assert headers["x-headway-fence"]
        assert ("authorization" in headers) is (instance is world.two)


def test_t3_an_instance_that_demands_a_token_refuses_a_wrong_one(world: World) -> None:
    outcome = world.outcome("stranger", "bank")
    assert outcome["code"] == "http_status"
    assert outcome["details"] == {"status": 401, "body": '{"error": "who are you?"}'}
    assert "answered 401" in str(outcome["error"])


def test_t3_an_unknown_tab_has_a_code_and_one_that_the_instance_lost_has_its_words(
    world: World,
) -> None:
    unknown = world.outcome("browser", "nobody's")
    assert (unknown["code"], unknown["details"]) == ("tab_not_found", {"tabId": "nobody's"})
    assert world.outcome("finder", "nobody's")["code"] == "tab_not_found"
    lost = world.outcome("browser", "lost")
    assert lost["code"] == "http_status"
    assert lost["details"] == {"status": 404, "body": '{"error": "one has no tab lost"}'}
    broken = world.outcome("finder", "boom")
    assert broken["code"] != "tab_not_found"
    assert "the book of tabs is lost" in str(broken["error"])


def test_t3_an_instance_that_is_not_there_is_said_to_be_unreachable(world: World) -> None:
    outcome = world.outcome("browser", "gone")
    assert outcome["code"] == "unreachable"
    assert "http://127.0.0.1:9 cannot be reached" in str(outcome["error"])


def test_t2_t3_a_task_without_a_tab_is_refused_naming_the_field(world: World) -> None:
    http = world.server.http
    refused = http.post("/tasks", json={"agentId": "browser", "action": "click"})
    assert refused.status_code == httpx.codes.BAD_REQUEST
    assert refused.json()["details"]["field"] == "tabId"
    tasks = [{"action": "click", "tabId": "news"}, {"action": "click"}]
    batch = http.post("/tasks/batch", json={"agentId": "browser", "tasks": tasks})
    assert batch.status_code == httpx.codes.ACCEPTED
    assert batch.json()["submitted"] == 1
    assert batch.json()["items"][1]["error"]["details"]["field"] == "tasks[1].tabId"
    together = {"agentId": "browser", "atomic": True, "tasks": tasks}
    answer = http.post("/tasks/batch", json=together)
    assert answer.status_code == httpx.codes.BAD_REQUEST
    assert answer.json()["details"]["field"] == "tasks[1].tabId"


def test_t5_a_cancelled_task_hangs_up(world: World) -> None:
    world.one.came.clear()
    world.one.hung_up.clear()
    taken = submit(world.server, "browser", tabId="news", action="wait")
    assert world.one.came.wait(_WITHIN_S)
    world.server.http.post(f"/tasks/{taken['taskId']}/cancel").raise_for_status()
    assert until_state(world.server, taken["taskId"], "cancelled")
    assert world.one.hung_up.wait(_WITHIN_S)


def test_f5_a_deadline_hangs_up_too(world: World) -> None:
    world.one.hung_up.clear()
    outcome = world.outcome("browser", "mail", action="wait", deadline="3s")
    assert outcome["reason"] == "deadline_running"
    assert world.one.hung_up.wait(_WITHIN_S)
