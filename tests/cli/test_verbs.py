"""`explain`, `info`, `cache` and `completion` say what is true."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import warnings
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import convgrad
from convgrad._apps.cli import completion, info, models
from convgrad._base import config
from convgrad._compiler import jit


def value_of(formula: str, x, f, dy, result_shape):
    """Compute the sum an explanation prints, number by number, from its own text."""
    match = re.fullmatch(
        r"(\w+)\[(.*?)\] = sum over (.*?)(?: with (.*?))? of (\w+)\[(.*?)\] \* (\w+)\[(.*?)\]",
        formula,
    )
    assert match, formula
    _, wanted, ranges, rule, first, first_at, second, second_at = match.groups()
    arrays = {"x": x, "f": f, "dy": dy}
    bounds = {word.split("<")[0]: int(word.split("<")[1]) for word in ranges.split(", ")}

    @cache
    def code(text):
        python = re.sub(r"(\d)([a-z])", r"\1*\2", text)
        return compile(f"({python},)", text, "eval")

    def numbers(text, values):
        return eval(code(text), values)

    sizes = dict(bounds)
    # Letters of the result have the bounds that make its shape; found by trying all that stay inside.
    letters = sorted(set(re.findall(r"[a-z]", wanted)))
    total = np.zeros(result_shape)
    free = {letter: range(max(*result_shape, 1)) for letter in letters}
    for outer in np.ndindex(*(len(free[letter]) for letter in letters)):
        at = dict(zip(letters, outer, strict=True))
        names = list(sizes)
        for inner in np.ndindex(*sizes.values()):
            values = {**at, **dict(zip(names, inner, strict=True))}
            if rule is not None and any(
                values[part[0]] != numbers(part[2:], values)[0] for part in rule.split(", ")
            ):
                continue
            place, one, two = (
                numbers(wanted, values),
                numbers(first_at, values),
                numbers(second_at, values),
            )
            a, b = arrays[first], arrays[second]
            inside = all(
                0 <= i < n
                for where, shape in ((place, result_shape), (one, a.shape), (two, b.shape))
                for i, n in zip(where, shape, strict=True)
            )
            if inside:
                total[place] += a[one] * b[two]
    return total


@pytest.mark.parametrize("op", ["forward", "backprop_input", "backprop_filter"])
@pytest.mark.parametrize(("name", "layout", "shapes"), [
    ("depthwise_conv2d", "NHWC", ((1, 3, 3, 2), (2, 2, 2, 2))),
    ("depthwise_conv2d", "NCHW", ((1, 2, 3, 2), (2, 1, 2, 1))),
    ("conv2d", "NHWC", ((1, 3, 2, 2), (2, 1, 2, 2))),
])  # fmt: skip
def test_the_formula_computes_the_result(op, name, layout, shapes):
    """The text is evaluated as it stands: a wrong index, stride, pad or bound gives wrong numbers."""
    settings = {
        "strides": (2, 1),
        "padding": ((1, 0), (0, 1)),
        "data_format": layout,
        "dilations": (1, 2),
    }
    rng = np.random.default_rng(0)
    x, f = (rng.integers(1, 9, shape).astype(np.float64) for shape in shapes)
    y = getattr(convgrad, name)(x, f, **settings)
    dy = rng.integers(1, 9, y.shape).astype(np.float64)
    full = name if op == "forward" else f"{name}_{op}"
    operands = {
        "forward": (x, f),
        "backprop_input": (x.shape, f, dy),
        "backprop_filter": (x, f.shape, dy),
    }[op]
    expected = getattr(convgrad, full)(*operands, **settings)
    story = convgrad.explain(full, *shapes, dtype="float64", **settings)
    np.testing.assert_array_equal(value_of(story.formula, x, f, dy, expected.shape), expected)


def test_grouped_formula():
    story = convgrad.explain("conv2d_backprop_filter", [8, 56, 56, 64], [3, 3, 16, 32], strides=2)
    expected = "df[r,s,c,8g+k] = sum over n<8, p<28, q<28 of x[n,2p+r,2q+s,16g+c] * dy[n,p,q,8g+k]"
    assert story.formula == expected


def test_explain_prints_the_kernels(convgrad_command):
    words = ("explain", "depthwise_conv2d_backprop_filter", "8x28x28x32", "3x3x32x1")
    symbols = [
        source.symbol
        for source in convgrad.explain(words[1], [8, 28, 28, 32], [3, 3, 32, 1]).sources()
    ]
    assert len(symbols) == len(set(symbols)) >= 1
    ir, assembly = (convgrad_command(*words, option).out for option in ("--ir", "--asm"))
    for symbol in symbols:
        assert f"define void @{symbol}(" in ir
        assert re.search(rf"^_?{symbol}:", assembly, re.MULTILINE)
    document = convgrad_command(*words, "--asm", "--json").document
    assert list(document["asm"]) == symbols


def test_explain_of_a_transposed_convolution(convgrad_command):
    shapes = ("2x8x8x16", "3x3x4x16", "--strides", 2, "--output-shape", "16x16")
    found = convgrad_command("explain", "conv2d_transpose", *shapes, "--json").document
    same = convgrad.explain("conv2d_backprop_input", [2, 16, 16, 4], [3, 3, 4, 16], 2).to_dict()
    assert found["operation"] == "conv2d_transpose"
    assert (found["input_shape"], found["output_shape"]) == ([2, 8, 8, 16], [2, 16, 16, 4])
    assert (
        found["formula"]
        == same["formula"].replace("dx", "y").replace("dy", "x")
        == "y[n,h,w,c] = sum over p<8, q<8, r<3, s<3, k<16 with h=2p+r, w=2q+s of x[n,p,q,k] * f[r,s,c,k]"
    )
    for name in ("algorithm", "flops", "bytes", "steps", "candidates", "pads"):
        assert found[name] == same[name]
    assert "input [2, 8, 8, 16]" in convgrad_command("explain", "conv2d_transpose", *shapes).out


def test_explain_of_a_separable_convolution(convgrad_command):
    shapes = ("2x8x8x16", "3x3x16x1", "--strides", 2, "--pointwise-shape", "1x1x16x24")
    words = ("separable_conv2d", *shapes)
    found = convgrad_command("explain", *words, "--json").document
    parts = [
        convgrad.explain("depthwise_conv2d", [2, 8, 8, 16], [3, 3, 16, 1], 2).to_dict(),
        convgrad.explain("conv2d", [2, 4, 4, 16], [1, 1, 16, 24], padding="VALID").to_dict(),
    ]
    assert found["problems"] == json.loads(json.dumps(parts))
    assert found["operation"] == "separable_conv2d" and found["output_shape"] == [2, 4, 4, 24]
    assert found["pointwise_shape"] == [1, 1, 16, 24]
    for name in ("flops", "bytes"):
        assert found[name] == sum(part[name] for part in parts)
    told = convgrad_command("explain", *words).out
    assert "1. depthwise_conv2d, float32, NHWC" in told and "2. conv2d, float32, NHWC" in told
    kernels = convgrad_command("explain", *words, "--ir", "--json").document["ir"]
    assert len(kernels) == len(
        {step for part in parts for step in [each["kernel"] for each in part["steps"]]}
    )


@pytest.mark.parametrize(("words", "reason"), [
    ("conv2d_transpose 1x4x4x2 3x3x2x2", "`output_shape` must be given for conv2d_transpose"),
    ("separable_conv2d 1x4x4x2 3x3x2x1", "`pointwise_shape` must be given for separable_conv2d"),
    ("conv2d 1x4x4x2 3x3x2x1 --output-shape 4x4", "`output_shape` is for conv2d_transpose only, got it for conv2d"),
    ("conv2d 1x4x4x2 3x3x2x1 --pointwise-shape 1x1x2x2", "`pointwise_shape` is for separable_conv2d only"),
    ("conv2d_transpose 1x4x4x2 3x3x2x2 --output-shape 9x9", "conv2d_transpose: `input` must have 9 rows"),
])  # fmt: skip
def test_explain_says_which_shape_is_missing(convgrad_command, words, reason):
    ending = convgrad_command("explain", *words.split())
    assert ending.status == 2 and reason in ending.err and ending.err.count("\n") == 1, ending.err


def test_explain_takes_threads(convgrad_command):
    words = ("explain", "conv2d", "8x56x56x64", "3x3x64x64", "--json", "--threads")
    assert [convgrad_command(*words, n).document["threads"] for n in (1, 3)] == [1, 3]


def test_a_problem_without_kernels(convgrad_command):
    ending = convgrad_command(
        "explain", "conv2d", "1x4x4x1", "3x3x1x1", "--dtype", "int32", "--ir", "--json"
    )
    assert ending.status == 0
    if ending.document["algorithm"] == "reference":
        assert ending.document["ir"] == {}


@pytest.fixture
def environment(monkeypatch):
    monkeypatch.setattr(config, "_environment", {})
    return monkeypatch


def test_info_knows_where_switches_come_from(convgrad_command, environment):
    environment.setenv("CONVGRAD_NUM_THREADS", "3")
    environment.setenv("CONVGRAD_WINOGRAD", "sometimes")
    environment.delenv("CONVGRAD_VECTOR_BITS", raising=False)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        ending = convgrad_command("info", "--json")
    assert ending.err.startswith("convgrad: CONVGRAD_WINOGRAD='sometimes' is ignored: ")
    assert ending.err.count("\n") == 1  # the sentence, without the line of source it came from
    facts = ending.document
    rows = {row["name"]: row for row in facts["switches"]}
    assert rows.keys() == config.SWITCHES.keys()
    assert (rows["num_threads"]["value"], rows["num_threads"]["source"]) == (
        3,
        "CONVGRAD_NUM_THREADS",
    )
    assert facts["threads"] == {
        "number": 3,
        "source": "CONVGRAD_NUM_THREADS",
        "pool": "own",
        "pool_reason": "none of torch is imported in this process",
    }
    assert (
        rows["winograd"]["value"] == "auto" and "sometimes is ignored" in rows["winograd"]["source"]
    )
    assert (rows["vector_bits"]["value"], rows["vector_bits"]["source"]) == (None, "default")


def test_info_says_why_not_a_better_row(monkeypatch):
    monkeypatch.setattr(info.host, "architecture", lambda: "x86_64")
    monkeypatch.setattr(
        info.host, "features", lambda: frozenset({"avx", "avx2", "fma", "f16c", "avx512f"})
    )
    monkeypatch.setattr(info.jit, "host_target", lambda: info.targets.find("avx2"))
    cpu = info._cpu()
    assert cpu["row"] == "avx2"
    assert cpu["why_not"] == {
        "avx512": "the CPU lacks avx512bw, avx512dq, avx512vl",
        "sse2": "comes later in the order",
    }


def test_info_says_where_the_headers_are(convgrad_command):
    ending = convgrad_command("info", "--include")
    folder = Path(ending.out.strip())
    assert ending.status == 0 and (folder / "convgrad" / "cc" / "convgrad.h").is_file()
    for words in (("--include",), ()):
        assert convgrad_command("info", *words, "--json").document["include"] == str(folder)


def test_info_imports_no_framework():
    """Asking for versions must not take seconds."""
    script = "import sys, convgrad._apps.cli.main as m, convgrad._apps.cli.info as i;"
    script += " m.parser(); print(i._versions(i._PEERS)); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert not {"torch", "tensorflow", "jax"} & set(done.stdout.splitlines()[-1].split())


@pytest.fixture
def layers(monkeypatch):
    """Stand in for the benchmarks' networks: one depthwise and one dense layer."""

    def layer(dense):
        out = 5 if dense else 4
        return SimpleNamespace(
            stride=2, dilation=1, padding="SAME", is_dense=dense, filter_shape=(3, 3, 4, 5 if dense else 1),
            input_shape=lambda layout: (2, 8, 8, 4) if layout == "NHWC" else (2, 4, 8, 8),
            output_shape=lambda layout: (2, 4, 4, out) if layout == "NHWC" else (2, out, 4, 4),
        )  # fmt: skip

    monkeypatch.setattr(
        models, "network", lambda name, batch: [layer(False), layer(True), layer(True)]
    )


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_cache_is_warmed_counted_and_cleared(
    convgrad_command, environment, tmp_path, layers, layout
):
    environment.setenv("CONVGRAD_CACHE_DIR", str(tmp_path / "kept"))
    environment.setattr(jit, "_kernels", {})
    assert convgrad_command("cache", "stats", "--json").document["entries"] == 0
    warmed = convgrad_command("cache", "warm", "--model", "any", "--layout", layout, "--json")
    assert warmed.status == 0, warmed.err
    assert (warmed.document["layers"], warmed.document["problems"]) == (3, 6)
    kept = convgrad_command("cache", "stats", "--json").document
    assert kept["entries"] == warmed.document["compiled"] > 0
    assert kept["folder"].startswith(str(tmp_path))
    again = convgrad_command(
        "cache", "warm", "--model", "any", "--layout", layout, "--json"
    ).document
    assert again["compiled"] == 0
    # What was warmed is what a call needs.
    shape = (2, 8, 8, 4) if layout == "NHWC" else (2, 4, 8, 8)
    before = len(jit._kernels)
    convgrad.depthwise_conv2d(
        np.ones(shape, np.float32), np.ones((3, 3, 4, 1), np.float32), 2, "SAME", layout
    )
    assert len(jit._kernels) == before
    cleared = convgrad_command("cache", "clear", "--json").document
    assert cleared["removed"] >= kept["entries"]
    assert convgrad_command("cache", "stats", "--json").document["entries"] == 0


@pytest.mark.parametrize(("words", "reason"), [
    ("warm", "needs --model NAME or --shape SHAPE"),
    ("warm --model a --shape b", "one of them"),
    ("clear --model a", "are for `cache warm`"),
    ("wram", "invalid choice: 'wram'"),
    ("warm --shape 8x9999999x9999999x3k3o8", "8x9999999x9999999x3k3o8: there is no memory for its"),
])  # fmt: skip
def test_cache_mistakes(convgrad_command, words, reason):
    ending = convgrad_command("cache", *words.split())
    assert ending.status == 2 and reason in ending.err and ending.err.count("\n") == 1


def test_cache_off_cannot_be_warmed(convgrad_command, environment, layers):
    environment.setenv("CONVGRAD_DISK_CACHE", "0")
    ending = convgrad_command("cache", "warm", "--model", "any")
    assert ending.status == 2 and "CONVGRAD_DISK_CACHE" in ending.err


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh"])
def test_completion_knows_verbs_and_options(convgrad_command, shell):
    pytest.importorskip("shtab")
    ending = convgrad_command("completion", shell)
    assert ending.status == 0
    assert "explain" in ending.out
    if shell == "bash":
        assert "--out-backprop" in ending.out and "_shtab_compgen_files" in ending.out
        if bash := shutil.which("bash"):
            subprocess.run([bash, "-n"], input=ending.out, text=True, check=True)


def test_completion_without_shtab(convgrad_command, monkeypatch):
    monkeypatch.setattr(completion, "find_spec", lambda name: None)
    ending = convgrad_command("completion", "bash")
    assert ending.status == 2 and "pip install shtab" in ending.err


def test_models_are_those_of_the_benchmarks(convgrad_command):
    listed = convgrad_command("cache", "warm", "--model", "list").out.split()
    assert {"mobilenet_v2", "resnet50"} <= set(listed)
    layers = models.network("MobileNet-V2", 4)
    assert len(layers) == 52 and layers[0].input_shape("NCHW") == (4, 3, 224, 224)
    ending = convgrad_command("cache", "warm", "--model", "mobilenet_v22")
    assert ending.status == 2 and "did you mean mobilenet_v2?" in ending.err


def test_layers_are_read_in_the_benchmarks_way(convgrad_command):
    assert models.layers(["8x56x56x144k3s2"])[0].output_shape("NHWC") == (8, 28, 28, 144)
    ending = convgrad_command("cache", "warm", "--shape", "8x56")
    assert ending.status == 2 and "8x56" in ending.err and ending.err.count("\n") == 1
