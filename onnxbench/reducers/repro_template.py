"""Run model.onnx and tell whether it still fails.

usage: python repro.py [--timeout SECONDS]
Exit status: 1 the failure is there, 0 it is gone, 125 cannot tell (as `git bisect run` wants it).
Needs numpy and the runtime; the onnx package where inputs.npz cannot hold the inputs.
"""

import argparse
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
CONFIG = json.loads("<<config>>")
PHASE = ["load", 0.0]


def phase(name):
    PHASE[:] = [name, time.perf_counter()]


# <<normalise>>

if "--child" in sys.argv:
    import numpy

    # <<runtime>>


def main():
    parser = argparse.ArgumentParser(description="Run model.onnx and tell whether it still fails.")
    parser.add_argument("--timeout", type=float, default=CONFIG["timeout"], metavar="SECONDS")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        return child(given.child)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # an exit ends the child too
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    for _ in range(CONFIG["tries"]):  # several for a failure that comes and goes
        seen = observe(given.timeout)
        if is_reported(seen):
            break
    print(visible("%s: %s" % (seen.get("version", CONFIG["suspect"]), seen["text"])))
    if seen["kind"] == "ok":
        print("The failure is gone.")
        return 0
    if seen["kind"] == "unknown":
        return 125
    if is_reported(seen):
        print(visible("FAILS: " + CONFIG["headline"]))
        return 1
    print(visible("Another failure than the reported one: " + CONFIG["headline"]))
    return 125


def visible(text):
    """A message as no terminal obeys it."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def is_reported(seen):
    return all(seen.get(key, "") == CONFIG["signature"][key] for key in ("kind", "detail", "phase", "message"))


def observe(timeout):
    """Run in a child process, so that a crash or a hang is an observation too."""
    with tempfile.TemporaryDirectory() as folder:
        place = os.path.join(folder, "seen.json")
        with open(os.path.join(folder, "log"), "w+b") as log:
            command = [sys.executable, os.path.abspath(__file__), "--child", place]
            process = subprocess.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True
            )
            verdict = wait(process, timeout)
            log.seek(0)
            tail = log.read()[-2000:].decode("utf-8", "replace").strip()
        if verdict:
            return verdict
        if os.path.exists(place):
            with open(place) as file:
                return json.load(file)
        started = os.path.exists(place + ".started")
    if started:  # else it is the runtime's import that died, and the model has no part in it
        name = ending(process.returncode)
        if name == "SIGKILL":  # nobody here sent it: the system ran out of memory
            return {"kind": "memory", "text": "killed, as for lack of memory"}
        return {"kind": "crash", "detail": name, "text": "dies with " + name}
    return {"kind": "unknown", "text": "cannot be run: " + (tail.splitlines() or ["no output"])[-1]}


def wait(process, timeout):
    """None if the child ended by itself in time and within its memory."""
    started = time.time()
    try:
        while process.poll() is None:
            if time.time() - started > timeout:
                return {"kind": "timeout", "text": "no answer within %g s" % timeout}
            if CONFIG["memory"] and resident(process.pid) > CONFIG["memory"]:
                return {"kind": "memory", "text": "over %d MB of memory" % (CONFIG["memory"] >> 20)}
            time.sleep(0.02)
    finally:
        end(process)
    return None


def end(process):
    """End the child if it still runs, and what it has started."""
    if hasattr(os, "killpg"):
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
    elif process.poll() is None:
        process.kill()
    process.wait()


def resident(pid):
    try:
        with open("/proc/%d/status" % pid) as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith("RssAnon"))
    except (OSError, StopIteration):
        return 0


def ending(code):
    if code >= 0:
        return "exit %d" % code
    try:
        return signal.Signals(-code).name
    except ValueError:
        return "signal %d" % -code


def child(place):
    feeds = load("inputs.npz", "input", CONFIG["inputs"])
    want = load("expected.npz", "output", CONFIG["outputs"]) if CONFIG["signature"]["kind"] == "numbers" else {}
    open(place + ".started", "w").close()
    try:
        if CONFIG["slower_than"]:
            seen = race(feeds)
        else:
            got = run(str(HERE / "model.onnx"), feeds)  # noqa: F821
            seen = judge(want, got) if want else {"kind": "ok", "text": "runs"}
    except MemoryError:
        seen = {"kind": "memory", "text": "runs out of memory"}
    except BaseException as error:  # a runtime may raise SystemExit: that is its failure
        seen = failure(error)
    seen["version"] = version()  # noqa: F821
    with open(place, "w") as file:
        json.dump(seen, file)
    os._exit(0)  # not to wait for threads that the runtime has left


def race(feeds):
    """How many times slower than the trusted runtime, loading apart, the fastest run of several of each."""
    trusted = {"phase": phase, "HERE": HERE, "__name__": "trusted"}
    exec(CONFIG["trusted"], trusted)
    best = [float("inf"), float("inf")]
    for _ in range(5):
        for i, one in enumerate((run, trusted["run"])):  # noqa: F821
            one(str(HERE / "model.onnx"), feeds)
            best[i] = min(best[i], time.perf_counter() - PHASE[1])
    ratio = best[0] / max(best[1], 1e-9)
    kind = "slow" if ratio > CONFIG["slower_than"] else "ok"
    return {"kind": kind, "text": "runs, %.3g times as long as %s" % (ratio, CONFIG["judge"])}


def judge(want, got):
    """What the outputs are, the most telling kind of difference first."""
    order = ["presence", "dtype", "shape", "nonfinite", "values"]
    kinds = ["presence" for name in set(want) ^ set(got)]
    kinds += [kind for kind in (differ(want[name], got[name]) for name in want if name in got) if kind]
    if not kinds:
        return {"kind": "ok", "text": "runs, and its outputs are right"}
    detail = min(kinds, key=order.index)
    return {"kind": "numbers", "detail": detail, "text": "runs, and its outputs are wrong (%s)" % detail}


def failure(error):
    """An exception as it was signed: by its class, the phase, and the message without its names and numbers."""
    name = type(error).__name__
    try:
        message = str(error)
    except Exception:
        message = "(an error without text)"
    kind = "unsupported" if CONFIG["signature"]["kind"] == "unsupported" else "error"
    text = "%s error: %s: %s" % (PHASE[0], name, " ".join(message.split())[:300])
    message = normalise(message, CONFIG["names"])  # noqa: F821
    return {"kind": kind, "detail": name, "phase": PHASE[0], "message": message, "text": text}


def load(archive, stem, names):
    """Values by name: from the npz where it holds them all, else from test_data_set_0."""
    if (HERE / archive).exists():
        with numpy.load(str(HERE / archive)) as held:
            if set(names) <= set(held.files):
                return {name: held[name] for name in names}
    import onnx
    from onnx import numpy_helper

    values = {}
    for i, name in enumerate(names):
        data = (HERE / "test_data_set_0" / ("%s_%d.pb" % (stem, i))).read_bytes()
        if name in CONFIG["sequences"]:
            values[name] = numpy_helper.to_list(onnx.SequenceProto.FromString(data))
        elif name in CONFIG["optionals"]:
            held = onnx.OptionalProto.FromString(data)
            empty = {field.name for field, _ in held.ListFields()} <= {"name", "elem_type"}
            values[name] = None if empty else numpy_helper.to_optional(held)
        else:
            values[name] = numpy_helper.to_array(onnx.TensorProto.FromString(data))
    return values


def differ(want, got):
    """None, or the kind of difference: |got - want| > atol * max|want| + rtol * |want|, and NaN and Inf must meet."""
    if want is None or got is None:
        return None if want is got else "presence"
    if isinstance(want, list) or isinstance(got, list):
        if type(want) is not type(got):
            return "dtype"
        if len(want) != len(got):
            return "shape"
        return next((kind for kind in map(differ, want, got) if kind), None)
    want, got = numpy.asarray(want), numpy.asarray(got)
    if want.dtype.kind in "OUS" or got.dtype.kind in "OUS":
        if want.shape != got.shape:
            return "shape"
        return None if want.astype(str).tolist() == got.astype(str).tolist() else "values"
    if want.dtype != got.dtype:
        return "dtype"
    if want.shape != got.shape:
        return "shape"
    rtol, atol = CONFIG["tolerance"].get(str(want.dtype), (0, 0))
    if not rtol and not atol and want.dtype.kind in "iub":
        return None if (want == got).all() else "values"
    wide = numpy.complex128 if want.dtype.kind == "c" else numpy.float64
    want, got = want.astype(wide), got.astype(wide)
    with numpy.errstate(all="ignore"):
        finite = numpy.isfinite(want)
        if not numpy.array_equal(want[~finite], got[~finite], equal_nan=True) or not numpy.isfinite(got[finite]).all():
            return "nonfinite"
        size = numpy.abs(want[finite])
        bound = atol * size.max(initial=0) + rtol * size
        return "values" if (numpy.abs(got[finite] - want[finite]) > bound).any() else None


if __name__ == "__main__":
    try:
        status = main()
    except SystemExit as end_:
        status = 125 if end_.code == 2 else end_.code
    except Exception as error:
        print("cannot tell: %s: %s" % (type(error).__name__, error), file=sys.stderr)
        status = 125
    sys.exit(status)
