"""One mistake per room and per bridge, with the tests that must notice it: the rows of `plant_bugs` beyond the sums."""

from __future__ import annotations

from dataclasses import dataclass

SPLIT = {"_apps", "_bridges"}
"""Rooms whose parts count as rooms of their own, as in tests/unit/test_layers.py."""


@dataclass(frozen=True)
class Bug:
    """One mistake people really make."""

    name: str
    file: str
    """In the package; its first part is the room. Of rooms with several floors, the first two."""
    right: str
    wrong: str
    tests: tuple[str, ...] = ()
    """Arguments of pytest; none means the numeric tests that go with the file."""

    @property
    def room(self) -> str:
        parts = self.file.split("/")
        return "/".join(parts[: 2 if parts[0] in SPLIT else 1])

    @property
    def in_kernels(self) -> bool:
        return self.file.startswith("_kernels/") and self.file != "_kernels/reference.py"

    @property
    def needs_frameworks(self) -> bool:
        return self.room.startswith("_bridges/") and self.room != "_bridges/dask"


ROOMS = (
    Bug(
        "the second half of a separable convolution ignores the layout",
        "_api/calls.py",
        'plain = (FLEXIBLE, 1, "VALID", settings.data_format, 1)',
        'plain = (FLEXIBLE, 1, "VALID", "NHWC", 1)',
        ("tests/unit/test_forms.py", "tests/numeric/test_operations.py"),
    ),
    Bug(
        "leading dimensions come back in reverse",
        "_arrays/request.py",
        "(*batch, *made[1:]) if batch",
        "(*batch[::-1], *made[1:]) if batch",
        (
            "tests/unit/test_forms.py",
            "tests/arrays/test_layouts.py",
            "tests/numeric/test_operations.py",
        ),
    ),
    Bug(
        "an array with gaps is read as if it had none",
        "_arrays/holding.py",
        "if array.dtype is row.numpy and array.flags.num & C_ALIGNED == C_ALIGNED:",
        "if array.dtype is row.numpy:",
        ("tests/arrays/test_layouts.py",),
    ),
    Bug(
        "means of shares are weighted twice",
        "_kernels/norm/finish.py",
        "mean.value = k.fma(apart, weight, mean.value)",
        "mean.value = k.fma(apart, weight * weight, mean.value)",
        ("tests/numeric/test_norm.py",),
    ),
    Bug(
        "float16 loses its sign",
        "_compiler/codegen/convert.py",
        'sign = wide.bitwise("lshr", 16).bitwise("and", 0x8000)',
        'sign = wide.bitwise("lshr", 16).bitwise("and", 0x4000)',
        ("tests/codegen/test_convert.py",),
    ),
    Bug(
        "relocations without their addends",
        "_compiler/jit/elf.py",
        "base) + addend",
        "base)",
        ("tests/unit/test_elf.py", "tests/test_tiny.py"),
    ),
    Bug(
        "the last chunk of a job runs over",
        "_runtime/parfor.py",
        "%end = select i1 %short, i64 %reach, i64 %items",
        "%end = select i1 %short, i64 %reach, i64 %reach",
        ("tests/runtime/test_launch.py",),
    ),
    Bug(
        "a vector has half its lanes",
        "_compiler/targets/_row.py",
        "return self.vector_bits // 8 // itemsize",
        "return self.vector_bits // 16 // itemsize",
        ("tests/unit/test_targets.py", "tests/numeric/test_plans.py"),
    ),
    Bug(
        "waking threads is free",
        "_compiler/costs/__init__.py",
        "found[WAKE] = 0 if self.serial or threads == 1 else self.launches",
        "found[WAKE] = 0",
        ("tests/unit/test_costs.py",),
    ),
    Bug(
        "of several gradients of one tensor the last counts",
        "_apps/graph/gradients.py",
        "parts.setdefault(tensor, []).append(grad)",
        "parts[tensor] = [grad]",
        ("tests/graph/test_gradients.py", "tests/graph/test_gradient_graphs.py"),
    ),
    Bug(
        "constants of pages lose digits",
        "_apps/pages/tensor_texts.py",
        "if dtype.type(float(text)) == dtype.type(value))",
        "if np.isclose(float(text), value))",
        ("tests/pages_files/test_tensor_texts.py",),
    ),
    Bug(
        "packs have other grains",
        "_apps/export/c_source.py",
        "{launch.items}, {grain}, ",
        "{grain}, {launch.items}, ",
        ("tests/export/test_bits.py",),
    ),
    Bug(
        "the judge accepts every finite number",
        "_apps/check/judge.py",
        "close = np.abs(got - exact) <= allowed",
        "close = np.abs(got - exact) >= 0 * allowed",
        ("tests/check/test_planted.py",),
    ),
    Bug(
        "any token opens the studio",
        "_apps/studio/server.py",
        "if not hmac.compare_digest(",
        "if False and not hmac.compare_digest(",
        ("tests/studio/test_hostile_requests.py",),
    ),
    Bug(
        "the last slice of a run is a whole one",
        "_apps/cli/slicing.py",
        "part = call((end - begin, *problem.input_shape[1:]), images)",
        "part = call((at_once, *problem.input_shape[1:]), images)",
        ("tests/cli/test_run.py",),
    ),
    Bug(
        "the campaign of bits draws other numbers",
        "_apps/bits/campaign.py",
        "z >> np.uint64(30)",
        "z >> np.uint64(29)",
        ("tests/numeric/test_sums.py", "-k", "campaign"),
    ),
    Bug(
        "one round that was disturbed makes a row noisy",
        "_apps/bench/compare.py",
        "return float(statistics.median(rounds) / min(rounds) - 1)",
        "return float(max(rounds) / min(rounds) - 1)",
        ("tests/bench/test_bench_verb.py",),
    ),
    Bug(
        "a chunk's last output is left to nobody",
        "_bridges/dask/axes.py",
        "last = min(out, (wanted.end - 1 + before) // stride + 1)",
        "last = min(out, (wanted.end - 1 + before) // stride)",
        ("tests/dask_bridge/test_plan.py", "tests/dask_bridge/test_calls.py"),
    ),
    Bug(
        "examples of vmap are computed with each other's filters",
        "_bridges/torch/vmap.py",
        "y = sum_(x, f.flatten(0, 1), *rest, groups * examples)",
        "y = sum_(x, f.flip(0).flatten(0, 1), *rest, groups * examples)",
        ("tests/pytorch/test_derivatives.py", "-k", "vmap or batch or example"),
    ),
    Bug(
        "examples of vmap are along the wrong axis of the filter",
        "_bridges/jax/mapping.py",
        'group_out=problem.group_out * examples), {"f": 3, "y": channels}',
        'group_out=problem.group_out * examples), {"f": 2, "y": channels}',
        ("tests/jax_bridge/test_batching.py",),
    ),
    Bug(
        "a second derivative counts twice",
        "_bridges/tensorflow/gradients.py",
        "return input_gradient(deep, x, grad, g, attrs), None, forward",
        "return input_gradient(deep, x, grad, g, attrs), None, forward + forward",
        ("tests/tensorflow_bridge/test_derivatives.py",),
    ),
    Bug(
        '"same" pads on the wrong side',
        "_bridges/keras/padding.py",
        "sides += (whole // 2, whole - whole // 2)",
        "sides += (whole - whole // 2, whole // 2)",
        ("tests/keras_bridge/test_backends.py", "-k", "jax"),
    ),
    Bug(
        "runs of forward passes are longer",
        "_problem/sums/gather.py",
        "RUN = 48\n",
        "RUN = 64\n",
        ("tests/numeric/test_sums.py",),
    ),
    Bug(
        "runs of filter gradients are shorter",
        "_problem/sums/pixels.py",
        "PIXELS = 50\n",
        "PIXELS = 40\n",
        ("tests/numeric/test_sums.py",),
    ),
    Bug(
        "Winograd's products are added by fours",
        "_problem/sums/winograd.py",
        "CHAIN = 8\n",
        "CHAIN = 4\n",
        ("tests/numeric/test_sums.py",),
    ),
    Bug(
        "a fused product is rounded before it is added",
        "_problem/sums/fma.py",
        "    unsure = (total.view(np.int64) & _BELOW_FLOAT32) == _TIE\n",
        "    unsure = (total.view(np.int64) & _BELOW_FLOAT32) != _TIE\n    unsure &= False\n",
        ("tests/numeric/test_sums.py",),
    ),
)
