"""`onnxbench inspect` from outside."""

import json
import os
import signal
import subprocess
import sys

import onnx
import pytest

from .conftest import HEALTHY, write

BROKEN = '<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => (float[2] y) { y = Relu (x, x) }'


def test_a_person_sees_what_matters(bench, healthy):
    done = bench("inspect", healthy)
    assert done.returncode == 0
    for text in ("healthy.onnx", "IR 8, opset ai.onnx 17", "2 nodes", "float[N, 3]", "Relu-14", "no problems found"):
        assert text in done.stdout
    assert "\x1b" not in done.stdout
    assert "\x1b[" in bench("inspect", healthy, "--color", "always").stdout


def test_json_is_one_object_with_a_schema(bench, healthy):
    said = json.loads(bench("inspect", healthy, "--json").stdout)
    assert said["schema"] == "onnxbench.inspect/1"
    assert set(said) == {
        *("schema", "model", "path", "header", "operators", "cost", "values", "tensors", "structure", "blocks"),
        *("made_up", "dead_nodes", "problems"),
    }


def test_an_invalid_model_is_shown_and_ends_with_3(bench, tmp_path):
    path = write(tmp_path / "broken.onnx", BROKEN)
    done = bench("inspect", path)
    assert done.returncode == 3
    assert "1 nodes" in done.stdout
    assert "OB601" in done.stdout
    assert "error[OB305]" in done.stderr
    said = json.loads(bench("inspect", path, "--json").stdout)
    assert (said["error"]["code"], said["header"]["nodes"]) == ("OB305", 1)


def test_fail_on_is_for_ci(bench, tmp_path):
    text = HEALTHY.replace("(float[N, 3] x)", "(float[N, 3] x)").replace("{ [a]", "{ [dead] d = Abs (x) [a]")
    path = write(tmp_path / "dead.onnx", text)
    assert bench("inspect", path).returncode == 0
    done = bench("inspect", path, "--fail-on", "OB640,OB642")
    assert done.returncode == 1
    assert "OB642" in done.stderr
    assert bench("inspect", path, "--fail-on", "OB640").returncode == 0
    assert bench("inspect", path, "--fail-on", "OB999").returncode == 2


def test_sizes_make_numbers_of_symbols(bench, healthy):
    said = json.loads(bench("inspect", healthy, "--json").stdout)
    assert said["cost"]["peak_bytes"] == "24*N"
    for option in (("--dim", "N=5"), ("--shape", "x=5x3")):
        assert json.loads(bench("inspect", healthy, "--json", *option).stdout)["cost"]["peak_bytes"] == 120
    assert bench("inspect", healthy, "--dim", "M=5").returncode == 3
    assert bench("inspect", healthy, "--shape", "z=5x3").returncode == 3


def test_a_closer_look(bench, healthy):
    said = json.loads(bench("inspect", healthy, "--node", "a", "--json").stdout)
    (node,) = said["nodes"]
    assert (node["operator"], node["since"], node["inputs"][0]["type"]) == ("Relu", 14, "float[N, 3]")
    said = json.loads(bench("inspect", healthy, "--value", "h", "--json").stdout)
    (value,) = said["values"]
    assert (value["producer"], value["consumers"]) == ("'a' (Relu)", ["'b' (Neg)"])
    assert "made by 'a' (Relu)" in bench("inspect", healthy, "--value", "h").stdout
    assert "Neg" in bench("inspect", healthy, "--find", "op=Neg or op=Abs").stdout
    done = bench("inspect", healthy, "--node", "aa")
    assert (done.returncode, "OB303" in done.stderr) == (3, True)


def test_text_leaves_large_tensors_out(bench, tmp_path):
    path = write(tmp_path / "m.onnx", HEALTHY)
    proto = onnx.load(path)
    proto.graph.initializer.append(onnx.helper.make_tensor("w", 1, [999], [1.25] * 999))
    onnx.save(proto, path)
    done = bench("inspect", path, "--text")
    assert "y = Neg (h)" in done.stdout
    assert "float[999] w" in done.stdout
    assert "1.25" not in done.stdout


def test_differences(bench, healthy, tmp_path):
    other = write(tmp_path / "other.onnx", HEALTHY.replace("Neg (h)", "Abs (h)"))
    done = bench("inspect", healthy, "--diff", other)
    assert done.returncode == 1
    assert "- 'b' (Neg)" in done.stdout
    assert "+ 'b' (Abs)" in done.stdout
    assert "OB106" in done.stderr
    assert bench("inspect", healthy, "--diff", healthy).returncode == 0
    said = json.loads(bench("inspect", healthy, "--diff", other, "--json").stdout)
    assert (said["same"], said["error"]["code"]) == (False, "OB106")
    assert bench("inspect", healthy, "--diff", other, "--fail-on", "OB640").returncode == 2


def test_a_folder_is_a_table_with_totals(bench, healthy, tmp_path):
    folder = tmp_path / "zoo" / "inner"
    folder.mkdir(parents=True)
    write(tmp_path / "zoo" / "a.onnx", HEALTHY)
    write(folder / "b.onnx", HEALTHY.replace('"": 17', '"": 13'))
    (folder / "c.onnx").write_bytes(b"")
    done = bench("inspect", "zoo")
    assert done.returncode == 3  # c is no model
    assert "OB302" in done.stdout
    said = json.loads(bench("inspect", "zoo", "--json").stdout)
    assert said["schema"] == "onnxbench.inspect/1"
    assert [model.get("error", {}).get("code") for model in said["models"]] == [None, None, "OB302"]
    assert said["totals"]["opsets"] == {"ai.onnx 17": 1, "ai.onnx 13": 1}
    assert said["totals"]["operators"] == {"Relu": 2, "Neg": 2}
    assert bench("inspect", "zoo/*.onnx").returncode == 0
    assert bench("inspect", "zoo/*.nothing").returncode == 3
    assert bench("inspect", "zoo/a.onnx", "zoo/inner/b.onnx").returncode == 0
    assert bench("inspect", "zoo", "--node", "a").returncode == 2
    said = json.loads(
        bench("inspect", "zoo/*.onnx", "zoo/inner/b.onnx", "--dim", "N=2", "--dim", "M=3", "--json").stdout
    )
    assert [model["cost"]["peak_bytes"] for model in said["models"]] == [
        48,
        48,
    ]  # sizes that a model has not are for others


def test_names_cannot_steer_the_terminal(bench, tmp_path):
    proto = onnx.parser.parse_model(HEALTHY)
    proto.graph.node[0].name = "\x1b]0;owned\x07\n"
    proto.producer_name = "\x1b[31m"
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "\x1b]0;owned\x07"
    onnx.save(proto, tmp_path / "m.onnx")
    for more in ([], ["--json"], ["--find", "op=Relu"], ["--text"], ["--color", "always"]):
        assert "\x1b]0;" not in bench("inspect", "m.onnx", *more).stdout


def test_twenty_thousand_nodes_stay_readable(bench, tmp_path):
    nodes = " ".join(f"t{i + 1} = Relu (t{i})" for i in range(20_000))
    write(
        tmp_path / "m.onnx",
        f'<ir_version: 8, opset_import: ["": 17]> g (float[N] t0) => (float[N] t20000) {{ {nodes} }}',
    )
    done = bench("inspect", "m.onnx")
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) < 60


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs here")
def test_a_fifo_is_no_model(bench, tmp_path):
    os.mkfifo(tmp_path / "f.onnx")
    assert bench("inspect", "f.onnx", timeout=20).returncode == 3


@pytest.mark.parametrize(
    "options, code, says",
    [
        (["--shape", "x=1x3"], "OB206", "input 'x' is declared '2*Nx3xMx4', which '1x3' does not fit"),
        (["--shape", "x="], "OB206", "which '' does not fit"),
        (["--shape", "x=2x5x1x4"], "OB206", "which '2x5x1x4' does not fit"),
        (["--shape", "x=2x3x7x4", "--dim", "M=5"], "OB206", "symbol 'M' is 5 and 7 at once"),
        (["--shape", "x=2x3x7x4", "--dim", "N=5"], "OB206", "symbol '2*N' is 2 and 10 at once"),
        (["--dim", "K=5"], "OB303", "no symbolic dim named 'K'"),
        (["--dim", "*=5"], "OB303", "no symbolic dim named '*'"),
        (["--shape", "z=5"], "OB303", "no input named 'z'"),
    ],
)
def test_sizes_that_cannot_be_are_refused(bench, tmp_path, options, code, says):
    text = HEALTHY.replace("(float[N, 3] x)", '(float["2*N", 3, M, 4] x)').replace("(float[N, 3] y)", "(y)")
    write(tmp_path / "m.onnx", text)
    for more in ([], ["--value", "h"], ["--find", "op=Neg"]):
        done = bench("inspect", "m.onnx", *options, *more)
        assert done.returncode == {"2": 2, "3": 3}[code[2]]
        assert f"error[{code}]: " in done.stderr
        assert says in done.stderr


def test_sizes_and_many_models(bench, tmp_path):
    write(tmp_path / "a.onnx", HEALTHY)
    write(tmp_path / "b.onnx", HEALTHY.replace("[N, 3]", "[K, 3, 3]"))
    done = bench("inspect", "a.onnx", "b.onnx", "--shape", "x=7x3", "--json")
    said = json.loads(done.stdout)
    assert (done.returncode, said["error"]["code"]) == (2, "OB206")
    assert "K" in said["models"][1]["error"]["message"]
    assert bench("inspect", "a.onnx", "b.onnx", "--dim", "K=2", "--dim", "N=2").returncode == 0
    done = bench("inspect", "a.onnx", "b.onnx", "--dim", "M=2")
    assert (done.returncode, "error[OB303]: no symbolic dim named 'M' in these models" in done.stderr) == (3, True)
    assert "float" not in done.stderr
    assert "a.onnx" in done.stdout


def test_nodes_in_bodies_say_where_they_are(bench, tmp_path):
    text = """<ir_version: 8, opset_import: ["": 17]> g (float[?] x, bool c) => (float[?] y) { [if] y = If (c) <
      then_branch = t () => (float[?] o) { [inside] o = Relu (x) }, else_branch = e () => (float[?] o) { o = Neg (x) }> }"""
    write(tmp_path / "m.onnx", text)
    done = bench("inspect", "m.onnx", "--node", "inside")
    assert "inside: Relu-14, number 0 in then_branch of 'if' (If)" in done.stdout
    assert "x_d0 is dimension 0 of 'x', which the model does not name" in done.stdout
    said = json.loads(bench("inspect", "m.onnx", "--value", "o", "--json").stdout)
    assert [value["where"] for value in said["values"]] == ["then_branch of 'if' (If)", "else_branch of 'if' (If)"]
    assert said["made_up"] == [{"symbol": "x_d0", "value": "x", "axis": 0, "run": False}]
    assert "else_branch of 'if' (If)" in bench("inspect", "m.onnx", "--value", "o").stdout


@pytest.mark.parametrize(
    "nodes, says",
    [
        ("y = Relu (x)", "  no multiply-accumulates\n"),
        ("y = acme.Zap (x)", "  no multiply-accumulates known: the cost of 1 node cannot be told\n"),
        ("a = acme.Zap (x) y = acme.Zap (a)", "  no multiply-accumulates known: the cost of 2 nodes cannot be told\n"),
        ("y = MatMul (x, x)", "  8 multiply-accumulates\n"),
        ("a = MatMul (x, x) y = acme.Zap (a)", "  8 multiply-accumulates, without 1 node whose cost cannot be told\n"),
    ],
)
def test_the_cost_is_a_sentence(bench, tmp_path, nodes, says):
    head = '<ir_version: 8, opset_import: ["": 17, "acme": 1]> g (float[2, 2] x) => (float[2, 2] y)'
    write(tmp_path / "m.onnx", f"{head} {{ {nodes} }}")
    assert says in bench("inspect", "m.onnx").stdout


def test_strings_need_not_be_text(bench, tmp_path):
    """ONNX strings are bytes: they are compared as such, and escaped where only text goes."""

    def model(name, tail, more=b"same"):
        proto = onnx.parser.parse_model(HEALTHY)
        proto.graph.initializer.add(name="s", data_type=8, dims=[2], string_data=[b"\xff" + tail, b"h\xc3\xa9"])
        proto.graph.node.append(
            onnx.helper.make_node("Zap", ["s"], ["z"], domain="acme", name="zap", label=b"\xfe" + more)
        )
        proto.graph.node[-1].attribute.append(onnx.helper.make_attribute("labels", [b"\xfd", b"ok"]))
        proto.opset_import.add(domain="acme", version=1)
        onnx.save(proto, tmp_path / name)

    for name, tail, more in (("a.onnx", b"1", b"x"), ("b.onnx", b"1", b"x"), ("c.onnx", b"2", b"y")):
        model(name, tail, more)
    assert bench("inspect", "a.onnx", "--diff", "b.onnx").returncode == 0
    done = bench("inspect", "a.onnx", "--diff", "c.onnx")
    assert done.returncode == 1
    assert "initializer s: strings" in done.stdout
    assert "attribute label: b'\\xfex' -> b'\\xfey'" in done.stdout
    done = bench("inspect", "a.onnx", "--text")
    assert done.returncode == 0
    for text in ("\\xff1", "hé", "\\xfex", "\\xfd", "y = Neg (h)"):
        assert text in done.stdout
    done = bench("inspect", "a.onnx", "--node", "zap")
    assert "labels = [b'\\xfd', 'ok']" in done.stdout


def test_names_may_be_anything(bench, tmp_path):
    """Empty, doubled, of many lines, very long, in another script: each is shown, and nothing is lost."""
    steps = " ".join(f"t{i + 1} = Relu (t{i})" for i in range(7))
    proto = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 17]> g (float[2] t0) => (float[2] t7) {{ {steps} }}'
    )
    long = "q" * 3000
    for node, name in zip(
        proto.graph.node, ["", "same", "same", "a\nb\x1b[31m", f"{long}/z", "größe/層", "a[0]/b"], strict=True
    ):
        node.name = name
    onnx.save(proto, tmp_path / "m.onnx")
    done = bench("inspect", "m.onnx")
    assert done.returncode == 0
    assert "  größe" in done.stdout
    assert all(len(line) < 200 for line in done.stdout.splitlines() if long not in line)  # the others are not padded
    assert len(json.loads(bench("inspect", "m.onnx", "--node", "same", "--json").stdout)["nodes"]) == 2
    assert "a\\nb\\x1b[31m" in bench("inspect", "m.onnx", "--node", "a\nb\x1b[31m").stdout
    assert len(bench("inspect", "m.onnx", "--find", "op=*").stdout.splitlines()) == 7
    for depth in ("0", "99"):
        blocks = json.loads(bench("inspect", "m.onnx", "--depth", depth, "--json").stdout)["blocks"]
        assert blocks["nodes"] == 7
        assert [block["name"] for block in blocks["blocks"]] == ([long, "größe", "a[0]"] if depth != "0" else [])
    assert bench("inspect", "m.onnx", "--depth", "-1").returncode == 2


def test_a_model_without_nodes(bench, tmp_path):
    write(tmp_path / "m.onnx", '<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => (float[2] x) { }')
    for more in ([], ["--text"], ["--value", "x"], ["--find", "*"], ["--diff", "m.onnx"], ["--json", "--all"]):
        done = bench("inspect", "m.onnx", *more)
        assert (done.returncode, done.stderr) == (0, "")


def test_sparse_initializers_are_shown_and_missed_in_text(bench, tmp_path):
    proto = onnx.parser.parse_model(HEALTHY)
    made = proto.graph.sparse_initializer.add(dims=[3])
    made.values.CopyFrom(onnx.helper.make_tensor("s", 1, [1], [3.0]))
    made.indices.CopyFrom(onnx.helper.make_tensor("i", 7, [1], [1]))
    proto.graph.node.append(onnx.helper.make_node("Add", ["h", "s"], ["z"]))
    onnx.save(proto, tmp_path / "m.onnx")
    assert "s: initializer, float[3]" in bench("inspect", "m.onnx", "--value", "s").stdout
    assert "cannot show sparse initializers, and there are 1" in bench("inspect", "m.onnx", "--text").stderr
    assert bench("inspect", "m.onnx", "--diff", "m.onnx").returncode == 0


def test_colours_are_for_who_wants_them(bench, healthy):
    plain = {**os.environ, "NO_COLOR": "1", "COLUMNS": "40"}
    assert "\x1b" not in bench("inspect", healthy, env=plain).stdout
    assert "\x1b[1;32m" in bench("inspect", healthy, "--color", "always", env=plain).stdout
    for arguments in ([healthy], [healthy, healthy.parent]):  # nothing is cut off in a pipe
        assert bench("inspect", *arguments, env=plain).stdout == bench("inspect", *arguments).stdout


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_ctrl_c_during_a_folder(tmp_path):
    for number in range(300):
        write(tmp_path / f"m{number}.onnx", HEALTHY)
    command = [sys.executable, "-m", "onnxbench", "inspect", str(tmp_path), "-v"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stderr is not None
    assert "1 of 300" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    out, rest = process.communicate(timeout=30)
    assert (process.returncode, out) == (130, "")
    assert rest.endswith("interrupted; nothing was written\n")
    assert "Traceback" not in rest
