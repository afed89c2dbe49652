"""`convgrad.export` and the verb: every way to name problems, every refusal, and no folder that is half written."""

from __future__ import annotations

import io
import json
import os
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import convgrad
from convgrad import graph
from convgrad._apps.cli.main import main
from convgrad._apps.export import door, folder, names, object_size, pack
from convgrad._apps.export.problems import Reader, chosen
from convgrad._base.errors import ArgumentError, ArgumentTypeError, CompileError, ConvgradError
from convgrad._compiler import targets
from convgrad._compiler.jit import objects
from convgrad._problem import text as _problem_text
from convgrad._runtime.program import Launch, Program

ROOT = Path(__file__).resolve().parents[2]
LINE = "conv2d 1x8x8x4 3x3x4x8"


def lines(what, **settings):
    reader = Reader(**settings)
    reader.read(what)
    reader.check_settings()
    return [_problem_text.write(problem) for problem in reader.problems]


def test_lines_layers_networks_and_files(tmp_path):
    assert lines(LINE) == [f"{LINE} padding=1,1:1,1"]
    assert lines([LINE, LINE, f"# a comment\n{LINE} strides=2\n"]) == [
        f"{LINE} padding=1,1:1,1",
        f"{LINE} strides=2 padding=0,1:0,1",
    ]
    three = lines("8x56x56x144k3s2", dtype="bfloat16", data_format="NCHW")
    assert [line.split()[0] for line in three] == [
        "depthwise_conv2d",
        "depthwise_conv2d_backprop_input",
        "depthwise_conv2d_backprop_filter",
    ]
    assert all(line.endswith("data_format=NCHW dtype=bfloat16") for line in three)
    file = tmp_path / "recorded.txt"
    file.write_text(f"{LINE}\n1x4x4x2k3\n")
    assert lines(file) == lines(str(file)) == lines([LINE, "1x4x4x2k3"])
    assert lines(_problem_text.read(LINE)) == lines(LINE)
    assert lines(f"@{file}") == lines(file)
    spaced = tmp_path / "with blanks.txt"
    spaced.write_text(LINE)
    assert lines(f"@{spaced}") == lines(str(spaced)) == lines(LINE)


def test_a_network_is_its_training_step():
    found = lines("MobileNetV2", batch=4)
    assert len(found) == 89 and all(line.split()[1].startswith("4x") for line in found)
    assert not any("backprop_input 4x224x224x3 " in line for line in found)
    assert any("conv2d 4x224x224x3 " in line for line in found)


def test_graphs_and_pages_give_their_convolutions(tmp_path):
    scope = graph.Scope.new_root_scope()
    x = graph.ops.Placeholder(scope, "float32", shape=[2, 8, 8, 3])
    f = graph.ops.Placeholder(scope, "float32", shape=[3, 3, 3, 4])
    y = graph.ops.Conv2D(scope, x, f, strides=[1, 2, 2, 1], padding="SAME")
    graph.add_symbolic_gradients(scope, [y], [f])
    unknown = graph.ops.Placeholder(scope, "float32", shape=[None, 8, 8, 3])
    graph.ops.Conv2D(scope, unknown, f, strides=[1, 1, 1, 1], padding="SAME")
    reader = Reader()
    reader.read(scope)
    found = [_problem_text.write(problem) for problem in reader.problems]
    assert [line.split()[0] for line in found] == ["conv2d", "conv2d_backprop_filter"]
    (note,) = reader.notes
    assert "sizes are unknown" in note
    path = tmp_path / "page.json"
    graph.save(scope, path)
    assert lines(path) == lines(graph.load(path)) == lines(str(path)) == found


def test_a_batch_that_a_graph_leaves_open_can_be_given(tmp_path):
    def made(batch):
        scope = graph.Scope.new_root_scope()
        x = graph.ops.Placeholder(scope, "float32", shape=[batch, 8, 8, 3])
        f = graph.ops.Placeholder(scope, "float32", shape=[3, 3, 3, 4])
        y = graph.ops.Relu(
            scope, graph.ops.Conv2D(scope, x, f, strides=[1, 2, 2, 1], padding="SAME")
        )
        z = graph.ops.Conv2D(
            scope, y, graph.ops.Placeholder(scope, "float32", shape=[1, 1, 4, 4]), [1] * 4, "SAME"
        )
        graph.add_symbolic_gradients(scope, [z], [x, f])
        return scope

    known = lines(made(5))
    assert len(known) == 5 and lines(made(None), batch=5) == known
    path = tmp_path / "page.json"
    graph.save(made(None), path)
    assert lines(f"@{path}", batch=5) == known
    with pytest.raises(ArgumentError, match="`batch` is for a network, or a graph that does not"):
        lines(made(5), batch=5)
    reader = Reader()
    reader.read(made(None))
    assert not reader.problems and all("`batch` says" in note for note in reader.notes)
    scope = graph.Scope.new_root_scope()
    x = graph.ops.Placeholder(scope, "float32", shape=[None, 8])
    graph.ops.Reshape(scope, x, [3, 8])
    with pytest.raises(ArgumentError, match="`batch` must fit the graph, got 5: node 'Reshape'"):
        lines(scope, batch=5)


def test_ops_keep_some_of_the_three():
    problems = list(_problem_text.read_lines("1x4x4x2k3", "it"))
    assert chosen(problems, None) == problems
    assert [each.kind.short for each in chosen(problems, ["fwd", "dw"])] == ["fwd", "bwd_filter"]
    for wrong in ([], ["forward"], "fwd"):
        with pytest.raises(ArgumentError, match="`ops` must be a list of fwd, dx, dw"):
            chosen(problems, wrong)


@pytest.mark.parametrize(
    ("what", "settings", "match"),
    [
        ("mobilenet_v9", {}, "did you mean 'mobilenet_v"),
        ("no/such/file.txt", {}, "is none of them"),
        ("conv2d", {}, "problems, line 1: INPUT and FILTER must follow conv2d"),
        ("conv2d 1x8x8x4 3x3x5x8", {}, "problems, line 1: .*evenly divisible"),
        (LINE, {"batch": 8}, "`batch` is for a network, or a graph .*, got 8"),
        (LINE, {"dtype": "float16"}, "`dtype` is for a layer or a network, got 'float16'"),
        ("1x8x8x4k3", {"data_format": "NCWH"}, "`data_format` must be NHWC or NCHW"),
        ("1x8x8x4k3", {"batch": 2}, "`batch` is for a network"),
    ],
)
def test_wrong_problems_are_named(what, settings, match):
    with pytest.raises(ArgumentError, match=match):
        lines(what, **settings)


@pytest.mark.parametrize("what", [3, [3], None, [[LINE]], b"conv2d"])
def test_wrong_types_are_named(what):
    with pytest.raises(ArgumentTypeError, match="export: `problems` must be"):
        lines(what)


def test_files_that_are_none(tmp_path):
    (tmp_path / "binary").write_bytes(b"conv2d \xff\xfe")
    with pytest.raises(ArgumentError, match="UTF-8, got byte 7"):
        lines(tmp_path / "binary")
    with pytest.raises(ArgumentError, match="it is a folder"):
        lines(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ArgumentError, match="it is a pipe"):
        lines(tmp_path / "pipe")


@pytest.mark.parametrize(
    ("name", "match"),
    [
        ("", "C identifier"),
        ("2fast", "C identifier"),
        ("a-b", "C identifier"),
        ("_a", "C identifier"),
        ("ä", "C identifier"),
        ("a\n", "C identifier"),
        ("../up", "C identifier"),
        (None, "C identifier"),
        ("int", "a word of C"),
        ("class", "a word of C"),
        ("cg_pack", "taken"),
        ("linux", "taken"),
        ("main", "taken; try|taken"),
        ("log", "taken"),
        ("stdint", "taken"),
        ("String", "taken"),
        ("m", "taken"),
        ("Con", "taken"),
        ("convgrad_packs", "taken"),
        ("a" * 41, "at most 40 letters"),
    ],
)
def test_names_that_are_no_names_of_c(tmp_path, name, match):
    with pytest.raises(ArgumentError, match=f"export: `name` must .*({match})"):
        convgrad.export(LINE, tmp_path / "pack", name=name)
    assert not (tmp_path / "pack").exists()


def test_no_pack_is_called_as_something_in_its_files(tmp_path):
    """A variable of C with the name of another one does not compile, and one of a parameter draws a warning."""
    convgrad.export([LINE, "1x8x8x4k3"], tmp_path, name="it")
    found = set()
    for file in ("it.c", "it.h", "it_test.c"):
        text = re.sub(
            r'/\*.*?\*/|"[^"\n]*"|#[^\n]*', " ", (tmp_path / file).read_text(), flags=re.DOTALL
        )
        found |= set(re.findall(r"(?<![\w.>])[A-Za-z]\w*", text))
    other = {name for name in found if not name.startswith(("it", "cg", "CG_"))}
    assert "rows" in other
    assert sorted(other - names.RESERVED - names.TAKEN) == []


def test_packs_whose_names_differ_in_case_do_not_hide_each_other(tmp_path):
    for name in ("net_a", "Net_a"):
        convgrad.export(LINE, tmp_path / name, name=name, with_test=False)
    guards = {
        (tmp_path / name / f"{name}.h").read_text().split("#ifndef ")[1].split()[0]
        for name in ("net_a", "Net_a")
    }
    assert guards == {"CONVGRAD_PACK_net_a_H", "CONVGRAD_PACK_Net_a_H"}


def test_functions_have_different_names_where_descriptors_differ():
    texts = [
        *(
            f"conv2d 1x8x8x4 3x3x4x8 {more}"
            for more in ("", "padding=VALID", "padding=1,1:1,2", "strides=2,1")
        ),
        *(f"conv2d 1x8x8x4 3x3x2x8 {more}" for more in ("", "dilations=2", "dtype=float64")),
        "depthwise_conv2d 1x8x8x4 3x3x4x2",
        "conv2d 1x4x8x8 3x3x4x8 data_format=NCHW",
        "conv2d 1x8x8x4 3x3x1x8",
    ]
    problems = [_problem_text.read(text) for text in texts]
    found = {names.function("n", each) for each in problems}
    assert len(found) == len({pack.descriptor(each) for each in problems}) == len(texts)
    assert all(name.isidentifier() for name in found)


def test_targets_and_caches_are_checked(tmp_path):
    for settings, match in (
        ({"target": "avx3"}, "`target` must be host or one of avx512, .* got 'avx3'"),
        ({"target": 3}, "`target` must be"),
        (
            {"target": "neon", "system": "dos"},
            "`system` must be one of linux, .* for neon, got 'dos'",
        ),
        ({"target": "cortex_m4", "system": "linux"}, "`system` must be one of none for cortex_m4"),
        ({"l1": 5}, "`l1` must be bytes of a cache"),
        ({"l2": "1M"}, "`l2` must be bytes of a cache"),
        ({"l3": True}, "`l3` must be bytes of a cache"),
        ({"batch": 0}, "`batch` must be a whole number"),
    ):
        with pytest.raises(ArgumentError, match=f"export: {match}"):
            convgrad.export(LINE, tmp_path / "pack", name="it", **settings)
    assert list(tmp_path.iterdir()) == []


def test_what_no_kernel_computes_is_refused_or_listed(tmp_path):
    texts = [LINE, f"{LINE} dtype=int32"]
    with pytest.raises(ArgumentError, match="dtype=int32` is refused: no kernel computes in int32"):
        convgrad.export(texts, tmp_path / "pack", name="it", with_test=False)
    assert not (tmp_path / "pack").exists()
    report = convgrad.export(
        texts, tmp_path / "pack", name="it", with_test=False, skip_refused=True
    )
    assert [each.line for each in report.pack.refused] == [f"{LINE} padding=1,1:1,1 dtype=int32"]
    assert "refused: conv2d" in str(report)
    assert "# refused: conv2d" in (tmp_path / "pack/it.txt").read_text()
    with pytest.raises(ArgumentError, match="none of them is left"):
        convgrad.export(texts[1], tmp_path / "other", name="it", skip_refused=True)


def test_a_problem_that_only_the_reference_takes_is_refused(monkeypatch, tmp_path):
    from convgrad._engine import planner
    from convgrad._kernels.plan import Plan

    monkeypatch.setattr(planner, "choose", lambda problem, target: Plan(problem, "reference"))
    with pytest.raises(ArgumentError, match=r"is refused: no kernel takes it \(\w+: .*\)\."):
        convgrad.export("conv2d 1x9x9x4 3x3x4x8 strides=2", tmp_path / "pack", name="it")


@pytest.mark.parametrize("target", ["cortex_m4", "wasm"])
def test_what_does_not_fit_the_address_space_is_refused(tmp_path, target):
    large = "conv2d 64x1024x1024x8 1x1x8x8"
    with pytest.raises(
        ArgumentError, match=rf"`{large} .*4,294,967,552 bytes, and {target} has room for 2,147"
    ):
        convgrad.export(large, tmp_path / "pack", name="it", target=target)


def test_images_too_long_to_plan_are_refused(tmp_path):
    with pytest.raises(ArgumentError, match="at most 262,144 rows and columns"):
        convgrad.export("conv2d 1x300000x1x1 1x1x1x1", tmp_path / "pack", name="it")


def test_kernels_with_too_many_words_are_refused():
    problem, target = _problem_text.read(LINE), targets.find("avx2")
    fits = Program(
        ("k",), ("x", "f", "y"), (Launch(0, (0, 1, 2), tuple(range(92)), 1, 1, 0, bytes(8)),)
    )
    assert pack._no_room(fits, [0], problem, target) is None
    for launch in (
        replace(fits.launches[0], words=tuple(range(93))),
        replace(fits.launches[0], places=(0,) * 7),
    ):
        reason = pack._no_room(replace(fits, launches=(launch,)), [0], problem, target)
        assert "at most 96 words and 6 pointers" in reason
    reason = pack._no_room(fits, [2**31], problem, targets.find("wasm"))
    assert "room for 2,147,483,648 in one address space" in reason


def test_what_does_not_fit_with_its_scratch_can_be_left_out(monkeypatch, tmp_path):
    other = "conv2d 1x9x9x4 3x3x4x8 padding=1,1:1,1"
    room = pack._no_room

    def tight(program, own, problem, target):
        return "no room" if problem.rows.size == 9 else room(program, own, problem, target)

    monkeypatch.setattr(pack, "_no_room", tight)
    with pytest.raises(ArgumentError, match=f"`{other}` is refused: no room"):
        convgrad.export([LINE, other], tmp_path / "pack", name="it", with_test=False)
    report = convgrad.export(
        [LINE, other], tmp_path / "pack", name="it", with_test=False, skip_refused=True
    )
    assert [each.line for each in report.pack.refused] == [other]
    assert len(report.pack.entries) == 1


def test_empty_problems_with_one_descriptor_are_one_in_any_order(tmp_path):
    """Without channels, a multiplier of 2 is the same as one of 3."""
    both = ["depthwise_conv2d 1x4x4x0 3x3x0x3", "depthwise_conv2d 1x4x4x0 3x3x0x2"]
    first, second = (
        pack.make_pack("it", map(_problem_text.read, texts), *_avx2())
        for texts in (both, both[::-1])
    )
    assert len(first.entries) == 1 and first.entries == second.entries


def _avx2():
    row = targets.find("avx2")
    return row, row.system_called()


def test_a_folder_keeps_what_it_has(tmp_path):
    place = tmp_path / "pack"
    place.mkdir()
    (place / "mine.txt").write_text("mine")
    convgrad.export(LINE, place, name="one", with_test=False)
    convgrad.export(LINE, place, name="two", with_test=False)  # the header of both is the same
    before = {path.name: path.read_bytes() for path in place.iterdir()}
    with pytest.raises(ArgumentError, match=r"libone.a exists; `force` \(--force\) replaces it"):
        convgrad.export(f"{LINE} strides=2", place, name="one", with_test=False)
    assert {path.name: path.read_bytes() for path in place.iterdir()} == before
    convgrad.export(f"{LINE} strides=2", place, name="one", with_test=False, force=True)
    assert (place / "one.h").read_bytes() != before["one.h"]
    assert (place / "mine.txt").read_text() == "mine"


def test_a_header_of_another_version_is_not_replaced(tmp_path):
    (tmp_path / "convgrad_pack.h").write_text("/* another one */")
    with pytest.raises(ArgumentError, match=r"convgrad_pack\.h exists"):
        convgrad.export(LINE, tmp_path, name="one", with_test=False)
    assert [path.name for path in tmp_path.iterdir()] == ["convgrad_pack.h"]


@pytest.mark.parametrize("there", [False, True])
def test_no_half_pack_is_left_behind(monkeypatch, tmp_path, there):
    place = tmp_path / "deep" / "pack"
    if there:
        place.mkdir(parents=True)
    written = []

    def full(path, data):
        written.append(path)
        if len(written) == 3:
            raise OSError(28, "No space left on device")
        path.write_bytes(data)

    monkeypatch.setattr(folder, "_write", full)
    with pytest.raises(OSError, match="No space left"):
        convgrad.export(LINE, place, name="one", with_test=False)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    assert place.exists() == there


@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), KeyboardInterrupt()])
@pytest.mark.parametrize("number", range(1, 17))
def test_names_given_half_way_are_taken_back(monkeypatch, tmp_path, error, number):
    old = {f"{letter}.c": b"old" for letter in "abcde"}
    for name, data in old.items():
        (tmp_path / name).write_bytes(data)
    rename, calls = Path.rename, []

    def broken(path, target):
        calls.append(path)
        if len(calls) == number:
            raise error
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", broken)
    new = {f"{letter}.c": b"new" for letter in "xabycdez"}
    with pytest.raises(type(error)):
        folder.write(tmp_path, new)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == old
    monkeypatch.undo()
    folder.write(tmp_path, new)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == new


def test_folders_above_a_pack_that_fails_are_removed(monkeypatch, tmp_path):
    monkeypatch.setattr(folder, "_write", lambda path, data: path / "missing" / data)
    with pytest.raises(TypeError):
        folder.write(tmp_path / "a" / "b" / "c", {"x": b""})
    assert list(tmp_path.iterdir()) == []


def test_folders_with_long_names(tmp_path):
    place = tmp_path / ("ü" * 127)  # 254 bytes, one less than a name may have
    convgrad.export(LINE, place, name="one", with_test=False)
    assert (place / "one.c").is_file() and len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"out": 5}, "`out` must be a path, got 5"),
        ({"out": None}, "`out` must be a path, got None"),
        ({"out": b"there"}, "`out` must be a path"),
        ({"out": ""}, "`out` must name a folder, got ''"),
        ({"out": "a\0b"}, "`out` must name a folder"),
        ({"out": "o" * 5000}, "`out` leads nowhere: .*too long"),
        ({"problems": "a" * 5000}, "`problems` must be lines .* none of them"),
        ({"problems": "@" + "a" * 5000}, "the file .* cannot be read: .*too long"),
        ({"problems": "@a\0b"}, "the file .* cannot be read: .*null"),
        ({"problems": "@"}, "the file .* cannot be read: it is a folder"),
        ({"ops": 5}, "`ops` must be a list of fwd, dx, dw, got 5"),
        ({"ops": [[]]}, "`ops` must be a list of fwd, dx, dw"),
        ({"dtype": 5}, "`dtype` must be one word, got 5"),
        ({"data_format": "NHWC dtype=half"}, "`data_format` must be one word"),
        ({"progress": 5}, "`progress` must be a function or None, got 5"),
    ],
)
def test_wrong_arguments_are_named(tmp_path, monkeypatch, given, match):
    monkeypatch.chdir(tmp_path)
    values = {"problems": LINE, "out": "pack", "name": "it", "target": "avx2", **given}
    with pytest.raises(ConvgradError, match=f"^export: {match}"):
        convgrad.export(**values)
    assert list(tmp_path.iterdir()) == []


def test_a_pipe_in_the_folder_is_not_read(tmp_path):
    os.mkfifo(tmp_path / "convgrad_pack.h")
    with pytest.raises(ArgumentError, match=r"convgrad_pack\.h exists"):
        convgrad.export(LINE, tmp_path, name="one", with_test=False)


def test_a_file_without_a_problem_is_refused(tmp_path):
    (tmp_path / "empty").write_text("# none\n\n")
    with pytest.raises(ArgumentError, match="empty must hold a problem"):
        lines([LINE, tmp_path / "empty"])


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ArgumentError, match="`out` must be a folder, got the file"):
        convgrad.export(LINE, tmp_path / "file", name="one")
    (tmp_path / "pack" / "one.c").mkdir(parents=True)
    with pytest.raises(ArgumentError, match=r"one\.c is a folder"):
        convgrad.export(LINE, tmp_path / "pack", name="one")


def test_a_compiler_that_dies_leaves_nothing(monkeypatch, tmp_path):
    def die(*_, **__):
        raise CompileError("LLVM's process died (signal 11, SIGSEGV)")

    monkeypatch.setattr(objects, "compile_all", die)
    with pytest.raises(CompileError, match="SIGSEGV"):
        convgrad.export(LINE, tmp_path / "pack", name="one")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(row.name, marks=[] if row.name in ("sse2", "wasm") else [pytest.mark.cc_long])
        for row in targets.ALL
    ],
)
def test_every_target_and_system_is_written(tmp_path, row):
    for system in targets.find(row).systems:
        report = convgrad.export(
            [LINE, "1x8x8x4k3"], tmp_path / system.name, name="one", target=row, system=system.name
        )
        assert report.pack.code_bytes > 500
        assert report.to_dict()["triple"] == system.triple
        assert sorted(path.name for path in (tmp_path / system.name).iterdir()) == list(
            report.files
        )


def test_sizes_of_what_is_no_object():
    for data in (b"", b"\x7fELF", b"MZ" * 50, b"\x7fELF\x02" + bytes(30)):
        with pytest.raises(ValueError, match="object file"):
            object_size.loaded_bytes(data)


def test_the_report_adds_up(tmp_path):
    report = convgrad.export(["2x9x9x8k3o16", "2x9x9x8k3"], tmp_path / "pack", name="one")
    facts = report.to_dict()
    json.dumps(facts)
    assert len(facts["problems"]) == 6
    assert facts["scratch_bytes"] == max(each["scratch_bytes"] for each in facts["problems"])
    symbols = {symbol for each in facts["problems"] for symbol in each["kernels"]}
    assert facts["kernels"] == len(symbols)
    assert facts["code_bytes"] <= sum(each["code_bytes"] for each in facts["problems"])
    assert facts["folder"] == str(tmp_path / "pack")
    header = (tmp_path / "pack/one.h").read_text()
    for each in facts["problems"]:
        assert f"#define {each['function']}_SCRATCH {each['scratch_bytes']}\n" in header
        assert each["line"] in header and each["line"] in str(report)
    assert repr(report).startswith("<pack one of 6 problems for ") and len(repr(report)) < 300


def test_progress_is_told(tmp_path):
    told = []
    convgrad.export(
        [LINE], tmp_path / "pack", name="one", progress=lambda done, text: told.append((done, text))
    )
    assert [text.split()[0] for _, text in told] == [
        "planning",
        "compiling",
        "compiling",
        "computing",
    ]
    assert sum(done for done, _ in told) == 3


# The command line.


@pytest.fixture
def command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def call(*words):
        capsys.readouterr()
        status = main([str(word) for word in words])
        return status, *capsys.readouterr()

    return call


def test_the_verb_takes_a_line_in_bare_words(command, tmp_path):
    status, out, err = command("export", *LINE.split(), "strides=2", "-o", "pack", "--name", "one")
    assert (status, err) == (0, "")
    assert f"{LINE} strides=2 padding=0,1:0,1" in out and "1 problem " in out
    assert "pack: 9 files" in out
    status, out, err = command("export", *LINE.split(), "-o", "pack", "--name", "one")
    assert status == 2 and err.count("\n") == 1 and "--force" in err


def test_the_verb_takes_everything_else(command, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{LINE}\n# nothing\n"))
    status, out, _ = command(
        *(
            "export",
            "-",
            "1x8x8x4k3",
            "--ops",
            "fwd,dw",
            "--dtype",
            "half",
            "--target",
            "cortex_m7",
        ),
        *("--l1", "16K", "-o", "pack", "--name", "one", "--no-self-test", "--json"),
    )
    assert status == 0
    facts = json.loads(out)
    assert [each["line"].split()[0] for each in facts["problems"]] == [
        "conv2d",
        "depthwise_conv2d",
        "depthwise_conv2d_backprop_filter",
    ]
    assert facts["cache_bytes"][0] == 16384 and facts["target"] == "cortex_m7"
    assert "one_test.c" not in facts["files"]


@pytest.mark.parametrize(
    ("words", "match"),
    [
        (["mobilenet_v9", "-o", "p", "--name", "n"], "did you mean 'mobilenet_v"),
        ([LINE, "-o", "p", "--name", "float"], "`name` must not be a word of C"),
        ([LINE, "--name", "n"], "-o/--output"),
        ([LINE, "-o", "p"], "--name"),
        ([LINE, "-o", "p", "--name", "n", "--target", "avx3"], "did you mean 'avx2'"),
        (
            [LINE, "-o", "p", "--name", "n", "--l1", "many"],
            "bytes must be a number such as 32768 or 32K",
        ),
        ([LINE, "-o", "p", "--name", "n", "--ops", "up"], "`ops` must be a list of fwd, dx, dw"),
        (["-o", "p", "--name", "n"], "PROBLEMS"),
        ([f"{LINE} dtype=int32", "-o", "p", "--name", "n"], "no kernel computes in int32"),
        (["# nothing", "-o", "p", "--name", "n"], "must hold at least one"),
    ],
)
def test_mistakes_on_the_command_line_are_one_line(command, words, match, tmp_path):
    status, out, err = command("export", *words)
    assert status == 2 and out == "" and err.count("\n") == 1
    assert match in err
    assert not (tmp_path / "p").exists()


@pytest.mark.parametrize("dtype", ["half", "float16"])
def test_the_verb_takes_both_names_of_half(command, dtype):
    words = ("1x8x8x4k3", "--dtype", dtype, "--ops", "fwd", "--name", "it", "-o", "out")
    status, out, _ = command("export", *words)
    assert status == 0 and "dtype=float16" in out


def test_refused_problems_are_listed_on_request(command):
    status, out, err = command(
        "export", LINE, f"{LINE} dtype=int32", "-o", "p", "--name", "n", "--skip-refused"
    )
    assert status == 0 and "1 problem " in out
    assert err.startswith("refused: conv2d 1x8x8x4 3x3x4x8 padding=1,1:1,1 dtype=int32: no kernel")


def test_the_door_is_public():
    assert convgrad.export is door.export
    assert "export" in convgrad.__all__
