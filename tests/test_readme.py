"""What README tells people to type works."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import onnxbench

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```console\n(.*?)```", README, re.DOTALL)
COMMANDS = [line[2:] for block in BLOCKS for line in block.splitlines() if line.startswith("$ ")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the model of README."""
    place = tmp_path_factory.mktemp("readme")
    onnxbench.save(onnxbench.load(ROOT / "fixtures" / "demo.onnxtxt"), place / "model.onnx")
    return place


def test_the_commands_run_in_order(folder):
    for command in [shlex.split(line) for line in COMMANDS]:
        if command[0] == "onnxbench":
            done = run([sys.executable, "-m", *command], folder)
            assert done.returncode == 0, (command, done.stderr)
        elif command[0] == "python" and command[1].endswith(".py"):
            assert run([sys.executable, *command[1:]], folder).returncode == 1


def test_no_command_is_of_a_kind_that_is_not_tested():
    kinds = {" ".join(shlex.split(line)[:1]) for line in COMMANDS}
    assert kinds == {"onnxbench", "python", "make"}


def test_the_targets_of_make_are_there():
    makefile = (ROOT / "Makefile").read_text()
    for target in [line.split()[1] for line in COMMANDS if line.startswith("make ")]:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)


def test_the_transcript_is_what_is_printed(folder):
    done = run([sys.executable, "-m", "onnxbench", "reduce", "model.onnx", "--bundle", "transcript"], folder)
    shown = BLOCKS[0].partition("\n")[2].partition("$ python")[0]
    if f"onnxruntime {version_of_onnxruntime()}\n" not in shown:
        pytest.skip("the transcript is of another release of ONNX Runtime")
    assert timeless(done.stderr + done.stdout).replace("transcript", "model.repro") == timeless(shown)


def test_every_command_and_shared_option_is_in_the_tables():
    from onnxbench.cli import app

    for command in app.registered_commands:
        assert f"`onnxbench {command.name}" in README
    commands = [command.name for command in app.registered_commands]
    helped = "".join(run([sys.executable, "-m", "onnxbench", name, "--help"], ROOT).stdout for name in commands)
    for option in set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", README)) - {"--help"}:
        assert option in helped, f"README names {option}, which no command has"


@pytest.mark.parametrize(
    "name", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", *(f"docs/{p.name}" for p in (ROOT / "docs").glob("*.md"))]
)
def test_links_lead_somewhere(name):
    page = ROOT / name
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", page.read_text()):
        assert (page.parent / target).exists(), f"{name} links to {target}"


def run(command, folder):
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def timeless(text):
    return re.sub(r"\d+\.\d s", "N s", text)


def version_of_onnxruntime():
    from importlib.metadata import version

    return version("onnxruntime")
