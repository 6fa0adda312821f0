"""What a piece of source text defines and what it lacks, as far as text that may not even parse can tell."""

from __future__ import annotations

import ast
import builtins
import re
import sys
import warnings

CODE_LINE = {
    ".py": re.compile(r"(?:import [\w.]+(?: as \w+)?(?:, *[\w.]+)*|from [\w.]+ import .+|@[\w.]+.*|def \w+\(.*)\s*(?:#.*)?"),
    ".cu": re.compile(r"(?:#include [<\"].+|#define \w+.*|extern \"C\".*|template ?<.*|(?:static )?__\w+__ .*)"),
}  # fmt: skip
"""Lines that prose does not have: where code without a fence begins."""

_PLAIN = {"torch", "numpy", "np"}  # imports that make no kernel
_C_KEYWORDS = {"if", "for", "while", "switch", "return", "sizeof", "catch"}
_C_QUIET = re.compile(
    r"//[^\n]*|/\*.*?(?:\*/|\Z)|\"(?:\\.|[^\"\\\n])*\"?|'(?:\\.|[^'\\\n])'", re.DOTALL
)  # comments, literals
_C_BODY = re.compile(r"\s*(?:const\s*)?\{")
_C_CALL = re.compile(r"\b([A-Za-z_]\w*)\s*(?:<[\w:, ]{1,200}>\s*)?(?:<<<|\()")


def parses(source: str) -> ast.Module | None:
    """The syntax tree of Python, None where it is none."""
    try:
        return _parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def error_line(source: str) -> int:
    """The line, from 1, in which Python stops parsing."""
    try:
        _parse(source)
    except SyntaxError as error:
        return error.lineno or 1
    except (ValueError, RecursionError, MemoryError):
        pass
    return 1


def _parse(source: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "invalid escape sequence" is the candidate's affair
        return ast.parse(source)


def defines(source: str, entry: str, suffix: str = ".py") -> bool:
    """Whether the text defines the entry at the top level."""
    if suffix == ".py":
        if tree := parses(source):
            return entry in defined(tree)
        return bool(re.search(rf"^(?:async )?def {re.escape(entry)}\s*\(", source, re.MULTILINE))
    return entry in c_functions(source)


def looks_like_code(text: str, suffix: str) -> bool:
    """Whether text without a known language reads as Python, or as C++."""
    lines = text.split("\n")
    hits = sum(bool(CODE_LINE[suffix].fullmatch(line.rstrip())) for line in lines)
    body = r"^[ \t]+(?:return\b|\w+ = )" if suffix == ".py" else r"[;{}][ \t]*$"
    return hits >= 1 and bool(re.search(body, text, re.MULTILINE))


def defined(tree: ast.Module) -> set[str]:
    """Functions, classes and variables of the top level."""
    names: set[str] = set()
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.Assign(targets=targets):
                names.update(target.id for target in targets if isinstance(target, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
    return names


def imported(tree: ast.Module) -> set[str]:
    """Names that imports bind, those within functions included."""
    return {
        alias.asname or alias.name.split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }


def lacking(tree: ast.Module) -> set[str]:
    """Names that are used and come from nowhere in the file."""
    local = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    local |= {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    local |= {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.ClassDef)}
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return used - defined(tree) - imported(tree) - local - set(dir(builtins))


def uses_a_dsl(tree: ast.Module) -> bool:
    """Whether it imports more than torch, numpy and the standard library: a file without is no kernel."""
    modules = {
        name.split(".")[0]
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    return bool(modules - _PLAIN - set(sys.stdlib_module_names) - {""})


def is_whole(tree: ast.Module, entry: str) -> bool:
    """Whether the last definition of the entry returns something and leaves nothing out: no stub, no excerpt."""
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == entry]
    if not functions:
        return False
    inside = list(ast.walk(functions[-1]))
    left_out = any(
        isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant) and n.value.value is ... for n in inside
    )
    return not left_out and any(isinstance(n, ast.Return) and n.value is not None for n in inside)


def has_function(tree: ast.Module) -> bool:
    return any(isinstance(node, ast.FunctionDef | ast.ClassDef) for node in tree.body)


def is_usage(tree: ast.Module, names: set[str]) -> bool:
    """Whether it uses these names without being part of their file: an example, a test, a benchmark."""
    called = {n.func.id for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
    return bool((called | imported(tree)) & names & lacking(tree) or _from_imported(tree) & names)


def _from_imported(tree: ast.Module) -> set[str]:
    return {a.name for node in tree.body if isinstance(node, ast.ImportFrom) for a in node.names}


def c_functions(source: str) -> set[str]:
    """Functions that C++ text defines: a name, parentheses that close, a body."""
    source = _C_QUIET.sub(" ", source)
    open_at: list[int] = []
    closes: dict[int, int] = {}
    for found in re.finditer(r"[()]", source):
        if found[0] == "(":
            open_at.append(found.start())
        elif open_at:
            closes[open_at.pop()] = found.start()
    names = set()
    for found in re.finditer(r"\b([A-Za-z_]\w*)\s*\(", source):
        close = closes.get(found.end() - 1)
        if close is not None and _C_BODY.match(source, close + 1):
            names.add(found[1])
    return names - _C_KEYWORDS


def c_defined(source: str) -> set[str]:
    """Functions that C++ text defines; macros too."""
    return c_functions(source) | set(re.findall(r"^[ \t]*#define (\w+)", source, re.MULTILINE))


def c_called(source: str) -> set[str]:
    """Functions that C++ text calls or launches."""
    return set(_C_CALL.findall(_C_QUIET.sub(" ", source))) - _C_KEYWORDS


def c_head(text: str) -> str:
    """The text up to the last line that ends as C++ does: words follow code that stands without a fence."""
    ends = list(re.finditer(r"^(?:[^\n]*[;}]|#[^\n]*)[ \t]*(?://[^\n]*)?$", text, re.MULTILINE))
    return text[: ends[-1].end()] if ends else text
