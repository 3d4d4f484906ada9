"""The tables of docs/ say what the code says."""

import dataclasses
import re
import subprocess
import sys
from pathlib import Path

import pytest

from onnxbench import Reduction, Runtime, Spec
from onnxbench.errors import CODES, AnswerIsNo, MachineError, ModelError, SafetyStop, UsageError

ROOT = Path(__file__).parents[1]
PYTHON = re.findall(r"```python\n(.*?)```\n\nIt prints (.*?)\n\n", (ROOT / "docs" / "python.md").read_text(), re.DOTALL)


def rows(page: str) -> list[list[str]]:
    lines = [line for line in (ROOT / "docs" / page).read_text().splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def test_every_error_code_is_documented_with_its_meaning():
    documented = {row[0]: row[1:] for row in rows("errors.md") if row[0].startswith("OB")}
    assert documented == {code: [str(exit_code(code)), meaning] for code, meaning in CODES.items()}


def exit_code(code: str) -> int:
    kinds = {
        str(kind.exit_code): kind.exit_code for kind in (AnswerIsNo, UsageError, ModelError, MachineError, SafetyStop)
    }
    return {**kinds, "7": 70, "8": 130}[code[2]]


def test_every_field_of_the_report_is_documented():
    table = (ROOT / "docs" / "reduce.md").read_text().partition("## JSON")[2]
    documented = re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)
    assert documented == ["schema", *(field.name for field in dataclasses.fields(Reduction))]


def test_every_option_of_reduce_is_documented():
    import inspect

    from onnxbench.commands.reduce import reduce

    page = (ROOT / "docs" / "reduce.md").read_text()
    for name in inspect.signature(reduce).parameters:
        option = "--" + name.rstrip("_").replace("_", "-")
        short = {"--quiet": "`-q`", "--verbose": "`-v`", "--models": "MODEL", "--context": "MODEL"}
        assert short.get(option, option) in page


@pytest.mark.parametrize("source, says", PYTHON)
def test_the_python_examples_print_what_they_say(source, says, tmp_path):
    (tmp_path / "fixtures").symlink_to(ROOT / "fixtures")
    done = subprocess.run([sys.executable, "-c", source], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == re.findall("`(.*?)`", says)


def test_there_are_python_examples():
    assert len(PYTHON) == 2


def test_the_plug_in_of_the_page_is_a_runtime():
    source = (ROOT / "docs" / "runtimes.md").read_text()
    example = next(text for text in re.findall(r"```python\n(.*?)```", source, re.DOTALL) if "class Shaky" in text)
    found: dict[str, object] = {}
    exec(example, found)
    shaky = found["Shaky"]
    assert isinstance(shaky, type)
    assert issubclass(shaky, Runtime)
    compile(shaky(Spec("shaky")).script(), "repro.py", "exec")
    with pytest.raises(UsageError):
        shaky(Spec("shaky", arguments="x=1"))


def test_every_problem_is_documented():
    from onnxbench.inspecting.problems import catalogue

    documented = {row[0]: row[1:] for row in rows("inspect.md") if row[0].startswith("OB6")}
    assert documented == {code: [entry.severity, entry.sentence] for code, entry in catalogue().items()}


def test_every_option_and_field_of_extract_is_documented():
    import inspect

    from onnxbench.commands.extract import extract
    from onnxbench.extracting.report import Extraction

    page = (ROOT / "docs" / "extract.md").read_text()
    short = {"--quiet": "`-q`", "--verbose": "`-v`", "--models": "MODEL", "--output": "`-o FILE`"}
    for name in inspect.signature(extract).parameters:
        option = "--" + name.rstrip("_").replace("_", "-")
        assert short.get(option, option) in page
    for name in Extraction("").to_dict():
        assert f"`{name}`" in page


def test_every_option_and_field_of_inspect_is_documented():
    import inspect

    from onnxbench.commands.inspect import inspect as command
    from onnxbench.inspecting.inspection import Inspection

    page = (ROOT / "docs" / "inspect.md").read_text()
    short = {"--quiet": "`-q`", "--verbose": "`-v`", "--models": "MODEL", "--everything": "--all"}
    for name in inspect.signature(command).parameters:
        option = "--" + name.replace("_", "-")
        assert short.get(option, option) in page
    for field in dataclasses.fields(Inspection):
        assert field.name == "fail_on" or f"`{field.name}`" in page


def test_every_option_and_field_of_convert_is_documented():
    import inspect

    from onnxbench.commands.convert import convert
    from onnxbench.converters.plan import Plan
    from onnxbench.converters.plan import Row as PlanRow
    from onnxbench.converters.report import Certificate, Conversion, Refusal, Rewrite
    from onnxbench.converters.summary import STATES, Row, Summary

    page = (ROOT / "docs" / "convert.md").read_text()
    short = {"--models": "MODEL", "--output": "`-o FILE`"}
    for name in inspect.signature(convert).parameters:
        option = "--" + name.rstrip("_").replace("_", "-")
        assert short.get(option, option) in page
    summary = Summary().to_dict()
    shown = [
        *(Conversion("").to_dict(), Refusal(*"nowsr").to_dict(), Rewrite("n", "o", "w", (), ()).to_dict()),
        *(Plan("", {}, {}).to_dict(), PlanRow(*"nnoodw", 0, 0).to_dict()),
        *(Certificate("n", "o", "w", "same").to_dict(), Row("m", "p", "other").to_dict(), summary, summary["totals"]),
    ]
    for name in {name for fields in shown for name in fields} | set(STATES):
        assert f"`{name}`" in page


def test_every_shrinking_pass_is_documented_in_its_order():
    from onnxbench.reducers.passes import catalogue

    table = (ROOT / "docs" / "reduce.md").read_text().partition("## Shrink")[2].partition("## Options")[0]
    documented = re.findall(r"^\| `(\w+)` \| (.*) \|$", table, re.MULTILINE)
    assert documented == [(entry.name, entry.sentence) for entry in catalogue().values()]
