"""macOS and Windows: what only Linux has may be absent.

The program itself is run in a process that lacks those things. What cannot be seen here (memory-mapped files that
cannot be removed while they are open, the command line of Windows) is left to the workflow.
"""

import subprocess
import sys
import textwrap
import tomllib

import pytest
import yaml
from helpers.support import ROOT

WORKFLOWS = {p.stem: yaml.safe_load(p.read_text(encoding="utf-8")) for p in (ROOT / ".github/workflows").glob("*.yml")}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

WITHOUT_LINUX = """
    import builtins, importlib.abc, io, os, shutil, signal, sys

    class Absent(importlib.abc.MetaPathFinder):
        def find_spec(self, name, path=None, target=None):
            if name in {"resource", "fcntl", "grp", "pwd", "termios", "psutil"}:
                raise ImportError(f"not on this system: {name}")

    usage = shutil.disk_usage(".")
    sys.meta_path.insert(0, Absent())
    for module in ("resource", "fcntl", "grp", "pwd"):
        sys.modules.pop(module, None)
    for name in ("SIGKILL", "SIGUSR1", "SIGUSR2", "SIGHUP", "SIGPIPE", "SIGALRM", "pthread_sigmask"):
        delattr(signal, name)
    for name in ("sched_getaffinity", "statvfs", "O_DIRECTORY", "getpgid", "killpg", "getloadavg", "nice", "setsid"):
        delattr(os, name)
    os.process_cpu_count = os.cpu_count  # from Python 3.13: what it is there where processors cannot be allotted

    whole_open, whole_os_open = io.open, os.open

    def no_system_files(file, *rest, **more):
        if str(file).startswith(("/proc/", "/sys/")):
            raise FileNotFoundError(2, "no such file", str(file))
        return whole_open(file, *rest, **more)

    def no_folders(path, *rest, **more):
        if os.path.isdir(path):
            raise PermissionError(13, "a folder", str(path))
        return whole_os_open(path, *rest, **more)

    exists = os.path.exists
    os.path.exists = lambda path: not str(path).startswith(("/proc/", "/sys/")) and exists(path)
    shutil._use_fd_functions = False  # as on Windows
    shutil.disk_usage = lambda path: usage  # which does not need statvfs there
    io.open = builtins.open = no_system_files
    os.open = no_folders

    from mmgibbs.runs.bench.evaluation import processor
    from mmgibbs.cli import main
    from mmgibbs.machine.memory import free_bytes, peak_bytes
    from mmgibbs.machine.threads import cores

    assert free_bytes() is None and cores() >= 1 and peak_bytes() == 0 and isinstance(processor(), str)
    short = ["--set", "sampler.samples=40", "--set", "sampler.burn_in=10", "--set", "sampler.chains=1", "--quiet"]
    assert main(["run", "configs/first.yaml", "--output", sys.argv[1], *short]) == 0
    assert main(["run", "configs/first.yaml", "--output", sys.argv[1], *short, "--extend", "20"]) == 0
    assert main(["report", sys.argv[1]]) == 0
    assert not {"resource", "fcntl"} & set(sys.modules)
    print("ran")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="takes away what only Linux has")
@pytest.mark.slow
def test_runs_where_nothing_of_linux_is_there(tmp_path):
    script = textwrap.dedent(WITHOUT_LINUX)
    command = [sys.executable, "-c", script, str(tmp_path / "run")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.strip().endswith("ran"), done.stderr


def test_the_workflows():
    matrix = WORKFLOWS["ci"]["jobs"]["test"]["strategy"]["matrix"]
    assert [name.partition("-")[0] for name in matrix["os"]] == ["ubuntu", "macos", "windows"]
    prefix = "Programming Language :: Python :: 3."
    assert matrix["python"] == [c.rpartition(" ")[2] for c in PROJECT["classifiers"] if c.startswith(prefix)]
    steps = [step.get("run", "") for job in WORKFLOWS["ci"]["jobs"].values() for step in job["steps"]]
    assert "mkdocs build --strict" in steps and any("pytest" in s for s in steps) and any("mypy" in s for s in steps)
    jobs = WORKFLOWS["release"]["jobs"]
    assert list(jobs) == ["tests", "build", "try", "publish"]
    assert jobs["build"]["needs"] == "tests" and jobs["try"]["needs"] == "build"
    assert jobs["publish"]["needs"] == "try" and jobs["publish"]["permissions"]["id-token"] == "write"
