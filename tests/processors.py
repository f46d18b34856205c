"""The checks that compare floating-point numbers, as three processors compute them: python tests/processors.py [SETTING]...

`make test-processors` runs it. One machine shows so what another would: the settings choose the instructions, and the number of threads
changes the order of sums. A failure names its setting.
"""

import os, subprocess, sys, tempfile, time
from pathlib import Path

from treekit.utils.instruction_set import PINNED_INSTRUCTIONS

ROOT = Path(__file__).resolve().parents[1]
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
SETTINGS = {  # name -> environment; numpy's OpenBLAS has its own choice of instructions
    "as pinned": PINNED_INSTRUCTIONS | dict.fromkeys(THREADS, "1"),
    "no pins, two threads": dict.fromkeys(THREADS, "2"),
    "SSE, compatible, two threads": dict(
        ATEN_CPU_CAPABILITY="default", MKL_CBWR="COMPATIBLE", DNNL_MAX_CPU_ISA="SSE41", OPENBLAS_CORETYPE="Nehalem"
    )
    | dict.fromkeys(THREADS, "2"),
}
NAMES = {name for setting in SETTINGS.values() for name in setting}
TESTS = "vector_cache encoders what_comes_with_the_kit syntax adapter_training".split()
NOTEBOOKS = r"nbs/.*/\d+_(instruction_set|vector_cache|dense|vectors|parser|adapters)\.ipynb"


def commands():
    "Two commands that run side by side: tests, notebooks."
    tests = [str(ROOT / "tests" / f"test_{name}.py") for name in TESTS]
    yield [sys.executable, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider", "-m", "not slow", *tests]
    yield [str(Path(sys.executable).with_name("nbdev-test")), "--n-workers", "1", "--path-re", NOTEBOOKS]


def run(setting):
    "Whether all checks pass under a setting."
    env = {k: v for k, v in os.environ.items() if k not in NAMES} | SETTINGS[setting] | dict(CUDA_VISIBLE_DEVICES="")
    began, said = time.monotonic(), []
    for command in commands():
        out = tempfile.TemporaryFile("w+", encoding="utf-8")
        said.append((subprocess.Popen(command, cwd=ROOT, env=env, stdout=out, stderr=subprocess.STDOUT), out))
    codes = [process.wait() for process, _ in said]
    for i, (_, out) in enumerate(said):
        out.seek(0)
        if "No files were eligible" in out.read():
            codes[i] = codes[i] or 1  # the pattern names no notebook
    print(f"== {setting}: {'passed' if not any(codes) else 'FAILED'}, {time.monotonic() - began:.0f} s", flush=True)
    for code, (_, out) in zip(codes, said):
        out.seek(0)
        lines = out.read().rstrip().splitlines()
        print("\n".join(lines if code else lines[-1:]), flush=True)
    return not any(codes)


if __name__ == "__main__":
    if wrong := set(sys.argv[1:]) - set(SETTINGS):
        sys.exit(f"no setting {wrong.pop()!r}: {', '.join(SETTINGS)}")
    sys.exit(not all([run(setting) for setting in sys.argv[1:] or SETTINGS]))
