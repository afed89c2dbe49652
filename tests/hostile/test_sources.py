"""What the sources must not hold: ways to run or load what somebody else wrote (SECURITY.md)."""

from __future__ import annotations

import ast
from pathlib import Path

import convgrad
from convgrad import _engine
from convgrad._compiler import jit

ROOT = Path(convgrad.__file__).parent
MODULES = {
    *("pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib", "code", "codeop", "xml"),
    *(
        "socket",
        "socketserver",
        "ssl",
        "http",
        "urllib",
        "urllib3",
        "ftplib",
        "smtplib",
        "requests",
    ),
    *("asyncio", "webbrowser"),
}
"""What runs what it reads, and what talks to a network."""
ALLOWED = {
    ("_apps/studio/opening.py", "webbrowser"),
    ("_bridges/dask/carrier.py", "cloudpickle"),
    ("_apps/studio/connections.py", "socket"),
    ("_apps/studio/server.py", "socket"),
    ("_bridges/torch/fusing.py", "pickle"),
    ("_apps/studio/server.py", "urllib.parse"),
    ("_apps/studio/server.py", "http.server"),
}
"""The studio serves its page on the loopback address, and opens the browser. Graphs of Dask go to its workers as
pickles, which is Dask's way; a task of ours says by value what it needs there. Whether a fused model can be pickled is
found out by doing so; nothing is read back. Nothing else may."""
CALLS = {
    "eval",
    "exec",
    "compile",
    "__import__",
    "mktemp",
    "system",
    "popen",
    "getoutput",
    "spawnl",
    "execv",
    "execvp",
}


def _complaints(path: Path) -> list[str]:
    found = []
    file = path.relative_to(ROOT).as_posix()
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, (ast.Import, ast.ImportFrom, ast.Call)):
            continue
        where = f"{file}:{node.lineno}"
        if isinstance(node, ast.Import):
            names = [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module or ""]
        else:
            names = []
        found += [
            f"{where}: import {name}"
            for name in names
            if name.partition(".")[0] in MODULES and (file, name) not in ALLOWED
        ]
        if not isinstance(node, ast.Call):
            continue
        function = node.func
        bare = isinstance(function, ast.Name)
        name = function.id if bare else function.attr if isinstance(function, ast.Attribute) else ""
        if name not in CALLS | {"load"} and not any(each.arg == "shell" for each in node.keywords):
            continue  # spelling all calls out takes 20 s
        owner = ast.unparse(function.value) if isinstance(function, ast.Attribute) else ""
        built_in = name in ("eval", "exec", "compile")  # methods of these names are something else
        if name in CALLS and (bare or not built_in) and owner != "platform":
            found.append(f"{where}: {name}()")
        keywords = {each.arg: ast.unparse(each.value) for each in node.keywords}
        if keywords.get("shell", "False") != "False":
            found.append(f"{where}: shell={keywords['shell']}")
        # NumPy's own default is False; we want it written down.
        loads = name == "load" and owner in ("np", "numpy")
        if loads and keywords.get("allow_pickle") != "False":
            found.append(f"{where}: numpy.load without allow_pickle=False")
    return found


def test_nothing_is_unpickled_evaluated_sent_or_given_to_a_shell():
    paths = sorted(ROOT.rglob("*.py"))
    assert len(paths) > 50
    assert [each for path in paths for each in _complaints(path)] == []


def test_python_is_started_in_one_place():
    """What starts a child goes through `_base.children`, which keeps the current folder off its import path."""
    words = ("sys.executable", "ProcessPoolExecutor", "multiprocessing.Process", "get_context(")
    found = [
        path.relative_to(ROOT).as_posix()
        for path in sorted(ROOT.rglob("*.py"))
        if any(word in path.read_text(encoding="utf-8") for word in words)
    ]
    assert found == ["_base/children.py"]


def test_the_test_sees_what_it_looks_for(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    path = tmp_path / "bad.py"
    path.write_text(
        "import pickle\nimport urllib.request\nfrom marshal import loads\neval('1')\nos.system('x')\n"
        "subprocess.run('x', shell=True)\nnp.load('x')\ntempfile.mktemp()\nre.compile('x')\nmodel.eval()\n"
    )
    assert len(_complaints(path)) == 8


def test_security_states_the_bounds_of_what_is_remembered():
    page = (Path(__file__).parents[2] / "SECURITY.md").read_text(encoding="utf-8")
    (told,) = [part for part in page.split("\n- ") if part.startswith("**Compiled kernels**")]
    assert f"up to {jit._MOST:,} of" in told
    assert f"up to {_engine._LARGEST:,} programs and calls" in told
    assert f"at most {_engine._MOST_TABLES >> 20} MB of tables" in told
