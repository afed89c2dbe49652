"""What XLA calls: versions of its interface, names, slabs of handlers, and errors that handlers give."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path
from typing import Any

import jax
import jax.ffi
import jax.numpy as jnp
import numpy as np
import pytest

import convgrad
import convgrad.jax
from convgrad import _engine
from convgrad._base import config
from convgrad._base.dtypes import DTYPES, by_short
from convgrad._bridges.jax import abi, handler, sums, switches, targets
from convgrad._bridges.records import GIVEN, RECORD, RUN
from convgrad._problem import text as _problem_text
from convgrad._runtime.bound import Bound
from convgrad._runtime.state import STATE_BLOCK

HEADER = Path(jax.ffi.include_dir()) / abi.HEADER


def installed_with(folder: Path, *changes: tuple[str, str]) -> abi.Version | str:
    """Return what is made of the installed header after some changes, of which each must change something."""
    text = HEADER.read_text()
    for pattern, new in changes:
        text, count = re.subn(pattern, new, text)
        assert count == 1, pattern
    place = folder / abi.HEADER
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)
    return abi.installed(folder)


def test_the_installed_interface_is_known() -> None:
    version = abi.installed(jax.ffi.include_dir())
    assert isinstance(version, abi.Version)
    assert version.major == abi.MAJOR


@pytest.mark.parametrize(
    ("pattern", "new", "why"),
    [
        (r"(#define XLA_FFI_API_MAJOR) 0", r"\1 1", "its version is 1."),
        (r"#define XLA_FFI_API_MINOR \d+", "", "states no version"),
        (r"  int64_t rank;\n", "", "XLA_FFI_Buffer has other fields"),
        (r"(ExecutionStage stage;)(\s+XLA_FFI_Args)", r"\1 int i;\2", "XLA_FFI_CallFrame has"),
        (r"(  void\*\* args; [^\n]*\n)", r"\1 int further;", "XLA_FFI_Args has other fields"),
        (
            r"_XLA_FFI_API_STRUCT_FIELD\(XLA_FFI_Error_Create\);",
            "_XLA_FFI_API_STRUCT_FIELD(XLA_FFI_Other);",
            "XLA_FFI_Api has other fields",
        ),
    ],
)
def test_another_interface_is_refused(tmp_path: Path, pattern: str, new: str, why: str) -> None:
    found = installed_with(tmp_path, (pattern, new))
    assert isinstance(found, str)
    assert why in found


def test_later_minor_versions_are_taken(tmp_path: Path) -> None:
    found = installed_with(tmp_path, (r"(#define XLA_FFI_API_MINOR) \d+", r"\1 77"))
    assert found == abi.Version(0, 77)


def test_a_missing_header_is_told(tmp_path: Path) -> None:
    assert "cannot be read" in str(abi.installed(tmp_path))


LINE = "depthwise_conv2d 1x5x5x3 3x3x3x1 padding=1,1:1,1"


def test_a_name_tells_problem_and_switches_and_nothing_of_the_process() -> None:
    name = targets.name_of(LINE, "")
    assert re.fullmatch(r"convgrad_[0-9a-f]{24}", name)
    assert name == targets.name_of(LINE, "")
    others = {targets.name_of(LINE + " dtype=half", ""), targets.name_of(LINE, "winograd=off")}
    assert len({name, *others}) == 3


def test_the_problem_stands_beside_the_call() -> None:
    x, f = jnp.ones((1, 5, 5, 3), jnp.float32), jnp.ones((3, 3, 3, 1), jnp.float32)
    text = jax.jit(lambda x, f: convgrad.depthwise_conv2d(x, f, 1, "SAME")).lower(x, f).as_text()
    assert f"@{targets.name_of(LINE, '')}(" in text
    assert f'problem = "{LINE}"' in text


def test_a_jitted_function_heeds_the_switches() -> None:
    x, f = jnp.ones((1, 8, 8, 8), jnp.float32), jnp.ones((3, 3, 8, 8), jnp.float32)
    call = jax.jit(lambda x, f: convgrad.conv2d(x, f, 1, "SAME"))

    def said() -> Any:
        call(x, f)
        return re.findall(r'switches = "(.*?)"', call.lower(x, f).as_text()), call._cache_size()

    assert said() == ([""], 1)
    with convgrad.options(winograd="off"):
        assert said() == (["winograd=off"], 2)
    assert said() == ([""], 2)
    with convgrad.threads(1):  # asked when a call runs
        assert said() == ([""], 2)
        assert STATE_BLOCK["THREADS"] == 1
    assert STATE_BLOCK["THREADS"] == convgrad.get_num_threads()


def test_switches_are_read_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module from a process with other switches is computed as there."""
    seen: list[Any] = []

    def note(name: str, problem: Any, program: Any, text: str) -> bool:
        seen.append((name, _problem_text.write(problem), isinstance(program, Bound)))
        return True

    monkeypatch.setattr(targets, "register_target", note)
    asked: list[Any] = []
    executable = _engine.program
    monkeypatch.setattr(
        _engine,
        "program",
        lambda problem: asked.append(config.deciding()) or executable(problem),
    )
    targets.register_text("convgrad_1", LINE, "winograd=off vector_bits=128")
    assert seen == [("convgrad_1", LINE, True)]
    assert dict(zip(config.DECIDING, asked[0], strict=True)) == {
        **{name: config.SWITCHES[name].default for name in config.DECIDING},
        "winograd": "off",
        "vector_bits": 128,
    }


def test_more_problems_than_a_slab_has_handlers() -> None:
    """Slabs are one object on disk, loaded again with another block; all compute what they should."""
    x = np.random.default_rng(0).standard_normal((1, handler.SLOTS + 8, 3, 2)).astype(np.float32)
    f = np.random.default_rng(1).standard_normal((2, 2, 2, 1)).astype(np.float32)
    slabs = len(targets._slabs)
    for rows in range(2, handler.SLOTS + 8):
        image = x[:, :rows]
        wanted = convgrad.depthwise_conv2d(image, f, 1, "VALID")
        got = convgrad.depthwise_conv2d(jnp.asarray(image), jnp.asarray(f), 1, "VALID")
        assert np.array_equal(got, wanted), rows
    assert len(targets._slabs) > max(slabs, 1)
    texts = {handler.source(number).text for number in (0, 1)}
    assert len(texts) == 1
    assert handler.source(0) != handler.source(1)  # else the first would be found for the second


def slab_call(slab: targets.Slab, name: str, address: int, *arrays: Any) -> Any:
    function = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(address)
    jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(function), platform="cpu")
    return jax.ffi.ffi_call(name, jax.ShapeDtypeStruct((1, 5, 5, 3), jnp.float32))(*arrays)


@pytest.fixture(scope="module")
def slab() -> targets.Slab:
    version = targets.usable()
    assert isinstance(version, abi.Version)
    return targets.Slab(1000, version)


def arrays() -> tuple[Any, Any]:
    return jnp.ones((1, 5, 5, 3), jnp.float32), jnp.ones((3, 3, 3, 1), jnp.float32)


def filled(slab: targets.Slab) -> int:
    problem = _problem_text.read(LINE)
    program = _engine.program(problem)
    assert isinstance(program, Bound)
    return slab.take(problem, program, LINE)


def record_of(slab: targets.Slab) -> tuple[Any, list[Any]]:
    """Return the words of the last sum's run, and those of its results."""
    at = len(handler.BLOCK) + (slab.used - 1) * len(handler.SLOT)
    address = slab._block[at + handler.SLOT.index("RECORD")]
    result, run = (address + 8 * (len(RECORD) + number * len(GIVEN)) for number in (2, 3))
    return (
        (ctypes.c_int64 * len(RUN)).from_address(run),
        [(ctypes.c_int64 * len(GIVEN)).from_address(result)],
    )


def test_a_handler_without_a_program_says_so(slab: targets.Slab) -> None:
    with pytest.raises(
        jax.errors.JaxRuntimeError, match="FAILED_PRECONDITION: convgrad: this handler"
    ):
        slab_call(slab, "convgrad_test_empty", slab._handlers[-1], *arrays())


@pytest.mark.parametrize("wrong", ["size", "dtype", "count", "result"])
def test_arrays_of_other_sizes_never_reach_a_program(slab: targets.Slab, wrong: str) -> None:
    x, f = arrays()
    given = {
        "size": (x[:, 1:], f),
        "dtype": (x.astype(jnp.float16), f),
        "count": (x, f, f),
        "result": (x, f),
    }[wrong]
    address = filled(slab)
    if wrong == "result":
        _, (result,) = record_of(slab)
        result[GIVEN.index("ELEMENTS")] += 1
    message = (
        f"INVALID_ARGUMENT: convgrad: the arrays do not have the sizes and the dtype of {LINE}"
    )
    with pytest.raises(jax.errors.JaxRuntimeError, match=re.escape(message)):
        slab_call(slab, f"convgrad_test_{wrong}", address, *given)


def test_a_lack_of_memory_is_told(slab: targets.Slab) -> None:
    """The entry returns 1 where there is no memory for workspaces: a program that asks for more than there can be."""
    problem = _problem_text.read(LINE)
    program = _engine.program(problem)
    assert isinstance(program, Bound)
    hungry = (ctypes.c_int64 * (program.nbytes // 8)).from_buffer_copy(
        ctypes.string_at(program.address, program.nbytes)
    )
    hungry[3] = 1 << 53  # partial sums
    address = slab.take(problem, program, LINE)
    run, _ = record_of(slab)
    run[RUN.index("PROGRAM")] = ctypes.addressof(hungry)
    message = f"RESOURCE_EXHAUSTED: convgrad: not enough memory for workspaces of {LINE}"
    with pytest.raises(jax.errors.JaxRuntimeError, match=re.escape(message)):
        slab_call(slab, "convgrad_test_memory", address, *arrays())
    hungry[0] = 0  # no program
    with pytest.raises(
        jax.errors.JaxRuntimeError, match="INTERNAL: convgrad: this program is damaged"
    ):
        slab_call(slab, "convgrad_test_damaged", address, *arrays())


def test_the_dtypes_of_xla() -> None:
    text = HEADER.read_text()
    names = {"f16": "F16", "bf16": "BF16", "f32": "F32", "f64": "F64", "i32": "S32"}
    assert names.keys() == {row.short for row in DTYPES}
    for short, name in names.items():
        found = re.search(rf"XLA_FFI_DataType_{name} = (\d+),", text)
        assert found is not None
        assert int(found[1]) == by_short(short).xla


def test_register_refuses_what_is_no_export() -> None:
    with pytest.raises(convgrad.errors.ArgumentTypeError, match=r"jax\.export\.Exported, got 3"):
        convgrad.jax.register(3)


def test_operands_of_a_primitive_are_checked() -> None:
    problem = _problem_text.read(LINE)
    x, f = arrays()
    with pytest.raises(convgrad.errors.ArgumentError, match="second operand must have shape"):
        sums.compute(problem, x, f[1:])
    with pytest.raises(convgrad.errors.DTypeError, match="first operand must be float32"):
        sums.compute(problem, x.astype(jnp.bfloat16), f)


def test_watching_the_switches_begins_once() -> None:
    before = len(config._watchers)
    switches.watch()
    switches.watch()
    assert len(config._watchers) - before <= 1
