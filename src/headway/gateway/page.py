"""The OpenAPI document as a page for people: plain HTML, without scripts."""

import json
from collections.abc import Iterator, Mapping
from html import escape

_STYLE = """\
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 60rem; padding: 1rem 2rem 4rem; }
h2 { border-bottom: 1px solid #8884; margin-top: 3rem; }
summary { cursor: pointer; padding: .4rem 0; }
code, pre { font: 14px/1.45 ui-monospace, monospace; }
pre { background: #8881; border-radius: 6px; overflow-x: auto; padding: .8rem; }
table { border-collapse: collapse; width: 100%; }
td, th { border-bottom: 1px solid #8883; padding: .3rem .6rem .3rem 0; text-align: left; vertical-align: top; }
.method { display: inline-block; font-weight: 600; width: 4.5rem; }
:root { color-scheme: light dark; }
"""


def page(document: Mapping[str, object]) -> str:
    """All that can be asked, by subject."""
    info = _dict(document["info"])
    lines = [
        '<!doctype html><html lang="en"><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(str(info['title']))} API</title><style>{_STYLE}</style>",
        f"<h1>{escape(str(info['title']))} API <small>{escape(str(info['version']))}</small></h1>",
        f"<p>{_prose(info['description'])}</p>",
        '<p>For programs: <a href="openapi.json">openapi.json</a></p>',
    ]
    for tag in _list(document["tags"]):
        name = _dict(tag)["name"]
        lines.append(f"<h2>{escape(str(name))}</h2>")
        for path, methods in _dict(document["paths"]).items():
            for method, asked in _dict(methods).items():
                if name in _list(_dict(asked)["tags"]):
                    lines.extend(_operation(document, path, method, _dict(asked)))
    lines.append("<h2>Schemas</h2>")
    for name, schema in _dict(_dict(document["components"])["schemas"]).items():
        lines.append(
            f'<details id="{escape(name)}"><summary><code>{escape(name)}</code></summary>'
            f"{_code(schema)}</details>"
        )
    return "\n".join(lines)


def _operation(
    document: Mapping[str, object], path: str, method: str, asked: dict[str, object]
) -> Iterator[str]:
    summary = escape(str(asked["summary"]))
    yield (
        f'<details><summary><span class="method">{method.upper()}</span> '
        f"<code>{escape(path)}</code> {summary}</summary>"
    )
    yield f"<p>{_prose(asked['description'])}</p>"
    parameters = [_dict(one) for one in _list(asked["parameters"])]
    if parameters:
        yield "<table><tr><th>Parameter<th>In<th>Schema"
        for one in parameters:
            needed = "" if one["required"] else " (optional)"
            yield (
                f"<tr><td><code>{escape(str(one['name']))}</code>{needed}<td>{one['in']}"
                f"<td>{_schema(_dict(one['schema']))}"
            )
        yield "</table>"
    if "requestBody" in asked:
        yield "<h4>Body</h4>"
        yield from _content(_dict(asked["requestBody"]))
    yield "<table><tr><th>Status<th>Meaning"
    for status, response in _dict(asked["responses"]).items():
        found = _resolved(document, _dict(response))
        yield f"<tr><td>{status}<td>{_prose(found['description'])}"
        if status < "300":
            yield from _content(found)
    yield "</table></details>"


def _content(told: dict[str, object]) -> Iterator[str]:
    for media, content in _dict(told["content"]).items():
        found = _dict(content)
        schema = f": {_schema(_dict(found['schema']))}" if "schema" in found else ""
        yield f"<p><code>{escape(media)}</code>{schema}</p>"
        if "example" in found:
            yield _code(found["example"])


def _schema(schema: dict[str, object]) -> str:
    ref = schema.get("$ref")
    if isinstance(ref, str):
        name = escape(ref.rpartition("/")[2])
        return f'<a href="#{name}"><code>{name}</code></a>'
    return f"<code>{escape(json.dumps(schema, ensure_ascii=False))}</code>"


def _resolved(document: Mapping[str, object], told: dict[str, object]) -> dict[str, object]:
    ref = told.get("$ref")
    if not isinstance(ref, str):
        return told
    found: object = document
    for step in ref.removeprefix("#/").split("/"):
        found = _dict(found)[step]
    return _dict(found)


def _code(value: object) -> str:
    if isinstance(value, str):
        return f"<pre>{escape(value)}</pre>"
    return f"<pre>{escape(json.dumps(value, indent=2, ensure_ascii=False))}</pre>"


def _prose(text: object) -> str:
    """Text with `code` and paragraphs."""
    parts = escape(str(text)).split("`")
    marked = "".join(
        f"<code>{part}</code>" if number % 2 else part for number, part in enumerate(parts)
    )
    return marked.replace("\n\n", "</p><p>")


def _dict(value: object) -> dict[str, object]:
    assert isinstance(value, dict)
    return value


def _list(value: object) -> list[object]:
    assert isinstance(value, list)
    return value
