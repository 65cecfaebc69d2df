"""One version of a Python source file, with what stands on each line.

Callers: judge. Pure: built from the text alone. Raises SyntaxError, ValueError or TokenError for a text that
isn't Python of the runner's own version.
"""

import ast
import io
import tokenize
from collections.abc import Iterator

_INLINE = (ast.IfExp, ast.BoolOp, ast.Lambda)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_NO_CODE = frozenset(
    {
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENCODING,
        tokenize.ENDMARKER,
    }
)

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Source:
    """One version of a file, with what stands on each line."""

    def __init__(self, text: str) -> None:
        self.lines = text.splitlines()
        tree = ast.parse(text)
        self._names: dict[int, str] = {}
        self.functions: list[Function] = []
        self.decorators: set[int] = set()
        self._owner: dict[int, ast.stmt] = {}
        self._function: dict[int, Function] = {}
        docstrings: set[int] = set()
        self._walk(tree, "", None, docstrings)
        self.code = _code_lines(text) - docstrings

    def _walk(
        self, node: ast.AST, prefix: str, function: Function | None, docstrings: set[int]
    ) -> None:
        for child in ast.iter_child_nodes(node):
            inner, name = function, prefix
            if isinstance(child, ast.stmt):
                self._own(child, function)
            if isinstance(child, (*FUNCTIONS, ast.ClassDef)):
                name = f"{prefix}.{child.name}" if prefix else child.name
                self._decorate(child)
                _docstring(child, docstrings)
            if isinstance(child, FUNCTIONS):
                self.functions.append(child)
                self._names[id(child)] = name
                inner = child
            self._walk(child, name, inner, docstrings)
        if isinstance(node, ast.Module):
            _docstring(node, docstrings)

    def _own(self, statement: ast.stmt, function: Function | None) -> None:
        """Inner statements come later and overwrite, so each line ends with its innermost one.

        The body of `if x: y = 1` doesn't: the line belongs to its condition.
        """
        first = min([statement.lineno, *(d.lineno for d in _decorators(statement))])
        for line in range(first, (statement.end_lineno or statement.lineno) + 1):
            owner = self._owner.get(line)
            heads = isinstance(owner, ast.If | ast.While) and owner.lineno == line
            if not heads:
                self._owner[line] = statement
            if function is not None:
                self._function[line] = function
        if isinstance(statement, ast.ClassDef) and function is None:
            for line in range(first, (statement.end_lineno or statement.lineno) + 1):
                self._function.pop(line, None)

    def _decorate(self, node: ast.stmt) -> None:
        for decorator in _decorators(node):
            self.decorators.update(
                range(decorator.lineno, (decorator.end_lineno or decorator.lineno) + 1)
            )

    @property
    def names(self) -> set[str]:
        """Qualified names of every function."""
        return set(self._names.values())

    def name_of(self, function: Function) -> str:
        """The qualified name of a function of this file."""
        return self._names[id(function)]

    def statement_at(self, line: int) -> ast.stmt | None:
        """The innermost statement of a line."""
        return self._owner.get(line)

    def function_at(self, line: int) -> Function | None:
        """The function whose body holds a line; its own header belongs to the outer one."""
        return self._function.get(line)

    def conditions_of(self, statement: ast.stmt) -> set[str]:
        """Conditions inside lines of one statement, nested statements apart."""
        found = {ast.dump(node) for node in _own_nodes(statement) if _is_inline(node)}
        if isinstance(statement, ast.If | ast.While):
            found |= _one_line_test(statement)
        return found

    def conditions_in(self, name: str) -> set[str]:
        """Every such condition of the function of that name."""
        found: set[str] = set()
        for function in self.functions:
            if self.name_of(function) == name:
                for node in ast.walk(function):
                    if isinstance(node, ast.stmt):
                        found |= self.conditions_of(node)
        return found

    def around(self, anchor: int, name: str) -> tuple[int, ...]:
        """First lines of the statements before and after a place, within one function."""
        function = next((f for f in self.functions if self.name_of(f) == name), None)
        if function is None:
            return ()
        firsts = sorted(
            {n.lineno for n in ast.walk(function) if isinstance(n, ast.stmt)} - {function.lineno}
        )
        before = [line for line in firsts if line <= anchor]
        after = [line for line in firsts if line > anchor]
        return (*before[-1:], *after[:1])


def _decorators(node: ast.stmt) -> list[ast.expr]:
    return node.decorator_list if isinstance(node, (*FUNCTIONS, ast.ClassDef)) else []


def _docstring(node: ast.AST, lines: set[int]) -> None:
    body = getattr(node, "body", [])
    first = body[0] if body else None
    value = first.value if isinstance(first, ast.Expr) else None
    if first is not None and isinstance(value, ast.Constant) and isinstance(value.value, str):
        lines.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))


def _own_nodes(statement: ast.stmt) -> Iterator[ast.AST]:
    """Walk a statement without the statements nested in it."""
    stack: list[ast.AST] = [statement]
    while stack:
        node = stack.pop()
        yield node
        stack += [c for c in ast.iter_child_nodes(node) if not isinstance(c, ast.stmt)]


def _is_inline(node: ast.AST) -> bool:
    return isinstance(node, _INLINE) or (isinstance(node, ast.comprehension) and bool(node.ifs))


def _one_line_test(statement: ast.If | ast.While) -> set[str]:
    """The condition of `if x: y = 1`: its branches stay on the line."""
    return {ast.dump(statement.test)} if statement.body[0].lineno == statement.lineno else set()


def _code_lines(text: str) -> set[int]:
    """Numbers of the lines that hold more than white space and comments."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    return lines
