"""Reads what only the source of a class says: its fields in order, and the docstrings below them."""

import ast
import inspect
import textwrap
from dataclasses import dataclass


@dataclass(frozen=True)
class Field:
    """One field of a class, as its source says it."""

    name: str
    type: str
    docstring: str | None


def fields_of(owner: type) -> list[Field]:
    """The fields that a class itself declares, with the docstrings right below them."""
    (body,) = ast.parse(textwrap.dedent(inspect.getsource(owner))).body
    assert isinstance(body, ast.ClassDef)
    found: list[Field] = []
    for statement, after in zip(body.body, [*body.body, None][1:], strict=True):
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation):
                kind = ast.unparse(annotation).strip("'\"")
                if not kind.startswith("ClassVar"):
                    found.append(Field(name, kind, _string(after)))
            case _:
                pass
    return found


def first_line(owner: object) -> str:
    return (inspect.getdoc(owner) or "").partition("\n")[0]


def _string(statement: ast.stmt | None) -> str | None:
    match statement:
        case ast.Expr(value=ast.Constant(value=str(text))):
            return text
        case _:
            return None
