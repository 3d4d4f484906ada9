"""`--slower-than`: a ratio to the trusted runtime."""

import json
import subprocess
import sys

from .conftest import write

CHAIN = f"""<ir_version: 8, opset_import: ["": 17]>
g (float[N, 3] t0) => (float[N, 3] t20) {{
  {" ".join(f"[n{i}] t{i + 1} = {'Softsign' if i == 7 else 'Sin'} (t{i})" for i in range(20))} }}"""


def test_the_slow_node_is_left_alone_and_races_in_the_bundle(bench, tmp_path):
    path = write(tmp_path / "m.onnx", CHAIN)
    suspect = "misbehaving:ops=Softsign,do=delay"
    done = bench("reduce", path, "-r", suspect, "--slower-than", "300", "--bundle", "out", "--json", "--passes", "")
    said = json.loads(done.stdout)
    assert (done.returncode, said["signature"]["kind"], said["confirmed"]) == (0, "slow", True)
    assert [culprit["name"] for culprit in said["culprits"]] == ["n7"]
    raced = said["slowness"]
    assert all(entry["times"] > 300 and entry["runs"] == 5 for entry in (raced["original"], raced["reproducer"]))
    report = (tmp_path / "out" / "REPORT.md").read_text()
    assert f"it takes {raced['reproducer']['times']:.0f} times as long on the reproducer" in report
    assert f"{raced['original']['times']:.0f} times as long on the original (the fastest of 5 runs)" in report
    repro = subprocess.run(
        [sys.executable, "repro.py"], cwd=tmp_path / "out", check=False, capture_output=True, text=True
    )
    assert (repro.returncode, "times as long as" in repro.stdout) == (1, True)


def test_what_is_not_slower_does_not_fail(bench, healthy):
    done = bench("reduce", healthy, "--slower-than", "1000")
    assert (done.returncode, "OB101" in done.stderr) == (1, True)
