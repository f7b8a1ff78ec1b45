"""List all messages of searchapp with file and line, to review them together.

    python scripts/messages.py                all messages
    python scripts/messages.py searchapp/tui  messages of a folder or module

The script reads the source. Messages are the arguments of errors, the help of commands and options, the details of
problems, dialogs, notices, labels of progress, and output of commands. Values of the run time are in braces.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "searchapp"

MESSAGE_FUNCTIONS = {
    "add", "note", "bad", "wrong", "warn", "warning", "say", "_say", "tell", "complain", "print_lines",
    "notify", "ask", "confirm", "choose", "prompt", "not_supported", "start", "phase", "task", "Choose",
    "WordsDialog", "Help", "Option", "Argument", "Typer", "Check", "KeyAction", "Foreign", "Failure",
    "entitle", "entered",
}  # fmt: skip
"""Functions, methods and classes whose arguments are messages."""


def error_classes(trees: dict[Path, ast.Module]) -> set[str]:
    """Return the names of SearchappError and its subclasses."""
    bases = {
        node.name: [base.id for base in node.bases if isinstance(base, ast.Name)]
        for tree in trees.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }
    result = {"SearchappError"}
    while more := {name for name, parents in bases.items() if name not in result and result & set(parents)}:
        result |= more
    return result


def sentence(node: ast.expr) -> str | None:
    """Return the text of a literal with values of the run time in braces; None for other expressions."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(map(_part, parts))
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            both = sentence(left), sentence(right)
            return None if both == (None, None) else "".join(text or "{...}" for text in both)
        case ast.IfExp(body=body, orelse=other):
            return " | ".join(filter(None, (sentence(body), sentence(other)))) or None
    return None


def _part(node: ast.expr) -> str:
    if isinstance(node, ast.FormattedValue):
        return f"{{{ast.unparse(node.value)}}}"
    return sentence(node) or ""


def messages(tree: ast.Module, errors: set[str]) -> Iterator[tuple[int, str]]:
    """Yield the messages of a module, each with its line."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if (
                name in errors | MESSAGE_FUNCTIONS
            ):
                for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
                    if text := sentence(argument):
                        yield argument.lineno, text
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ):
                # Messages are often assigned before they are used.
                if (text := sentence(value)) and " " in text.strip():
                    yield value.lineno, text
            case ast.Return(value=ast.expr() as value) | ast.Expr(value=ast.Yield(value=ast.expr() as value)):
                if (text := sentence(value)) and " " in text.strip():
                    yield value.lineno, text
            case ast.FunctionDef(
                decorator_list=[ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name))]
            ) if name in ("command", "callback"):
                yield node.lineno, ast.get_docstring(node) or ""


def main() -> None:
    """Print the messages."""
    folders = [Path(argument).resolve() for argument in sys.argv[1:]] or [SOURCE]
    trees = {path: ast.parse(path.read_text()) for path in sorted(SOURCE.rglob("*.py"))}
    errors = error_classes(trees)
    for path, tree in trees.items():
        if any(path.is_relative_to(folder) for folder in folders):
            for line, text in sorted(set(messages(tree, errors))):
                print(f"{path.relative_to(ROOT)}:{line}: {' '.join(text.split())}")


if __name__ == "__main__":
    main()
