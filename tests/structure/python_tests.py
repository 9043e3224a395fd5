"""A test of Python's whose assertions all stand in loops over what was returned says how much that was, too.

Else an empty result passes it. A loop over what stands in the test file itself runs as often as one reads there.
"""

import ast

# What gives as many elements as what it is called with or of: whether a loop runs is up to that.
AS_MANY = {"enumerate", "list", "tuple", "sorted", "reversed", "set", "frozenset", "dict", "iter"}
AS_MANY_METHODS = {"items", "keys", "values", "split", "splitlines", "copy"}
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef
COMPREHENSIONS = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp


def _is_assertion(node):
    if isinstance(node, ast.Assert):
        return True
    name = _called(node)
    return name is not None and (
        name.startswith(("assert", "check", "expect", "refuse", "accept")) or name in ("raises", "warns", "fail")
    )


def _called(node):
    if not isinstance(node, ast.Call):
        return None
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


class _Function:
    """What the names of a function were given last, and so which of its loops may not run at all."""

    def __init__(self, function, helpers, calling=frozenset()):
        self.function, self.helpers, self.calling = function, helpers, calling
        self.values = {}
        for node in ast.walk(function):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    self._give(target, node.value)
            elif isinstance(node, ast.withitem):
                self._give(node.optional_vars, node.context_expr)

    def _give(self, target, value):
        for name in target.elts if isinstance(target, ast.Tuple) else [target]:
            if isinstance(name, ast.Name):
                self.values[name.id] = value

    def in_loops(self, wanted):
        """Of each node that is wanted whether it stands in a loop that may not run."""
        found = []

        def visit(node, in_loop):
            if wanted(node):
                found.append((node, in_loop))
            for child in ast.iter_child_nodes(node):
                runs = not isinstance(node, ast.For | ast.AsyncFor) or child not in node.body
                visit(child, in_loop or (not runs and self.may_be_empty(node.iter)))

        visit(self.function, False)
        return found

    def may_be_empty(self, value, seen=frozenset()):
        """Whether the value is what some call has returned."""
        if isinstance(value, ast.Name):
            known = self.values.get(value.id)
            return known is not None and value.id not in seen and self.may_be_empty(known, seen | {value.id})
        if isinstance(value, ast.Call):
            return self._may_return_nothing(value, seen)
        if isinstance(value, ast.Attribute | ast.Subscript):
            return self.may_be_empty(value.value, seen)
        if isinstance(value, COMPREHENSIONS):
            return any(self.may_be_empty(part.iter, seen) for part in value.generators)
        if isinstance(value, ast.BinOp):
            return self.may_be_empty(value.left, seen) and self.may_be_empty(value.right, seen)
        return False

    def _may_return_nothing(self, call, seen):
        name = _called(call)
        is_own = isinstance(call.func, ast.Name) or getattr(call.func.value, "id", "") == "self"
        if is_own and name in self.helpers:
            return name not in self.calling and _gives_what_was_returned(name, self.helpers, self.calling | {name})
        if isinstance(call.func, ast.Attribute):
            return name not in AS_MANY_METHODS or self.may_be_empty(call.func.value, seen)
        if name == "range":
            return False
        if name == "zip":
            empty = [self.may_be_empty(value, seen) for value in call.args]
            return all(empty) if any(word.arg == "strict" for word in call.keywords) else any(empty)
        return name not in AS_MANY or any(self.may_be_empty(value, seen) for value in call.args)


def _gives_what_was_returned(name, helpers, calling):
    """Of a function of the test file: what it returns or yields may itself be empty."""
    function = _Function(helpers[name], helpers, calling)
    given = function.in_loops(lambda node: isinstance(node, ast.Return | ast.Yield | ast.YieldFrom))
    if any(not isinstance(node, ast.Return) for node, _ in given):
        return all(
            in_loop or (isinstance(node, ast.YieldFrom) and function.may_be_empty(node.value))
            for node, in_loop in given
        )
    return any(function.may_be_empty(node.value) for node, _ in given)


def tests_of_nothing(text):
    """(line, name) of each test function that asserts in such loops alone."""
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, FUNCTIONS)]
    helpers = {node.name: node for node in functions if not node.name.startswith("test_")}
    for node in functions:
        if node.name.startswith("test_"):
            found = _Function(node, helpers).in_loops(_is_assertion)
            if found and all(in_loop for _, in_loop in found):
                yield node.lineno, node.name
