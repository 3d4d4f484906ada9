"""Imports go down only, and what runs elsewhere runs there."""

import ast
import sys
from pathlib import Path

import pytest

import onnxbench

PACKAGE = Path(onnxbench.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))

#: The floors of the house, top first. A module may import from its own floor and from those below.
FLOORS = (
    {"cli", "commands", "render", "__main__"},
    {"reducers", "converters"},
    {"inspecting", "folding", "extracting"},
    {"recording", "verify"},
    {"runtimes"},
    {"core"},
    {"isolate", "worker", "errors", "interrupts", "process", "registry"},
)
#: Modules that other, older interpreters import too, and what they may import besides the standard library.
FOREIGN = {
    "worker.py": set(),
    "__init__.py": set(),
    "runtimes/__init__.py": set(),
    "runtimes/packing.py": {"numpy", "ml_dtypes"},
    "runtimes/job.py": {"numpy"},
    "runtimes/ort_session.py": {"numpy", "onnxruntime"},
}
#: Text that is copied into a bundle, not a module of the program: it prints.
TEMPLATES = {"reducers/repro_template.py"}
LONGEST = 350


def test_every_module_stands_on_a_floor():
    unplaced = {top(path) for path in FILES} - set.union(*FLOORS) - {"__init__"}
    assert not unplaced, f"name the floor of {unplaced} in FLOORS"


@pytest.mark.parametrize("path", FILES, ids=lambda path: relative(path))
def test_imports_go_down(path):
    if relative(path) == "__init__.py":
        return
    upward = [name for name in ours(path) if floor(name) < floor(top(path))]
    assert not upward


def test_commands_do_not_import_each_other():
    for path in (PACKAGE / "commands").glob("[!_]*.py"):
        others = [name for name in imports(tree(path)) if name.startswith("onnxbench.commands.")]
        assert all(name.split(".")[2].startswith("_") for name in others), path.name


@pytest.mark.parametrize("path", FILES, ids=lambda path: relative(path))
def test_only_the_top_floor_talks_to_the_user(path):
    if top(path) in FLOORS[0] or relative(path) in TEMPLATES:
        return
    parsed = tree(path)
    assert not {"rich", "typer", "click"} & {name.split(".")[0] for name in imports(parsed)}
    assert not [call.lineno for call in calls(parsed, "print")]


@pytest.mark.parametrize("name", FOREIGN)
def test_what_other_interpreters_import_is_light_and_old_syntax(name):
    parsed = ast.parse((PACKAGE / name).read_text(), feature_version=(3, 9))
    outside = {found.split(".")[0] for found in imports(parsed)} - sys.stdlib_module_names - {"onnxbench"}
    assert outside <= FOREIGN[name]
    modules = tuple("onnxbench." + other.removesuffix(".py").replace("/", ".") for other in FOREIGN)
    assert all(found.startswith(modules) for found in imports(parsed) if found.startswith("onnxbench."))


def test_onnxruntime_is_imported_inside_functions_only():
    for path in FILES:
        top_level = {name.split(".")[0] for name in imports(ast.Module(top_statements(path), []))}
        assert "onnxruntime" not in top_level or relative(path) in TEMPLATES, relative(path)


@pytest.mark.parametrize("name", ["reducers/normalise.py", "reducers/repro_template.py"])
def test_what_a_bundle_carries_parses_in_old_interpreters(name):
    parsed = ast.parse((PACKAGE / name).read_text(), feature_version=(3, 8))
    assert not [found for found in imports(parsed) if found.startswith("onnxbench")]


@pytest.mark.parametrize("path", FILES, ids=lambda path: relative(path))
def test_files_stay_short_and_say_what_they_are_for(path):
    assert len(path.read_text().splitlines()) <= LONGEST
    assert ast.get_docstring(tree(path)), "a module's first line says what it is for"


def relative(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def top(path: Path) -> str:
    """The first part of a module's name under the package."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def floor(name: str) -> int:
    return next(number for number, names in enumerate(FLOORS) if name in names)


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), str(path))


def top_statements(path: Path) -> list[ast.stmt]:
    return [statement for statement in tree(path).body if isinstance(statement, ast.Import | ast.ImportFrom)]


def imports(parsed: ast.AST) -> list[str]:
    """Full names of what is imported, at the top, inside functions, or for types only."""
    found: list[str] = []
    for node in ast.walk(parsed):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return found


def ours(path: Path) -> list[str]:
    """The floors' names that a module imports from."""
    names = [name.split(".")[1] for name in imports(tree(path)) if name.startswith("onnxbench.")]
    return [name for name in names if not name.startswith("__")]


def calls(parsed: ast.AST, name: str) -> list[ast.Call]:
    found = [node for node in ast.walk(parsed) if isinstance(node, ast.Call)]
    return [call for call in found if isinstance(call.func, ast.Name) and call.func.id == name]
