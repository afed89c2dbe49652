"""Processes of other kinds: several devices, forks, threads, caches and exports, without handlers, without JAX."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parents[1]
START = f"""
import sys, warnings
sys.path.insert(0, {str(TESTS)!r})
import jax, jax.numpy as jnp, numpy as np
jax.config.update("jax_enable_x64", True)
"""


def run(program: str, start: str = START, **environment: str) -> Any:
    return subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", "-c", start + program],
        capture_output=True,
        text=True,
        env=os.environ | environment,
        timeout=200,
        check=False,
    )


def work(program: str, **environment: str) -> list[str]:
    done = run(program, **environment)
    assert done.returncode == 0, done.stderr
    return str(done.stdout).split()


DEVICES = """
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
from jax_bridge.configurations import Configuration
from jax_bridge.running import everything, function, native, operands, same_numbers
from jax_bridge.models import images, loss, parameters
import convgrad.jax
assert len(jax.devices()) == 2
mesh = Mesh(np.array(jax.devices()), ("batch",))
for configuration in (
    Configuration(batch=4),
    Configuration("depthwise_conv2d", batch=4, groups=4, depth=1, made=2),
    Configuration("conv2d_transpose", batch=4, strides=(2, 2), size=(8, 7)),
    Configuration("conv_general_dilated", batch=4, orders=("NHWC", "OIHW", "NHWC")),
):
    image, weight = operands(configuration)
    half = Configuration(**{**configuration.__dict__, "batch": 2})  # what a device sees

    def of(call, whole):
        def loss(image, weight):
            return jnp.sum(jnp.sin(call(image, weight)))
        both = jax.value_and_grad(loss, (0, 1))
        if whole:
            return jax.jit(both)(image, weight)
        def step(image, weight):
            value, (into, of_weight) = both(image, jax.lax.pcast(weight, "batch", to="varying"))
            return jax.lax.psum(value, "batch"), (into, jax.lax.psum(of_weight, "batch"))
        sharded = jax.shard_map(step, mesh=mesh, in_specs=(P("batch"), P()), out_specs=(P(), (P("batch"), P())))
        return jax.jit(sharded)(image, weight)

    wanted = of(native(configuration), True)
    same_numbers(of(function(half), False), wanted)
    same_numbers(of(function(configuration), True), wanted)

    # An example each for the devices.
    pair = image.reshape(2, 2, *image.shape[1:])
    def per_device(image, weight):
        value, moves = jax.value_and_grad(lambda *both: jnp.sum(jnp.sin(function(half)(*both))), (0, 1))(image, weight)
        return jax.lax.psum(value, "all"), moves[0], jax.lax.psum(moves[1], "all")
    value, into, of_weight = jax.pmap(per_device, "all", in_axes=(0, None), out_axes=(None, 0, None))(pair, weight)
    same_numbers((value, (jnp.asarray(into).reshape(image.shape), of_weight)), wanted)

# Arrays that are spread over devices, in a jitted function that is not told so.
image, weight = operands(Configuration(batch=4))
spread = jax.device_put(image, NamedSharding(mesh, P("batch")))
made = jax.jit(function(Configuration(batch=4)))(spread, weight)
same_numbers(jax.device_get(made), jax.device_get(jax.jit(native(Configuration(batch=4)))(image, weight)))

# The second device.
there = jax.device_put(image, jax.devices()[1])
made = function(Configuration(batch=4))(there, jax.device_put(weight, jax.devices()[1]))
assert made.devices() == {jax.devices()[1]}, made.devices()

# A whole network, data parallel, inside accelerate.
weights, given = parameters(), np.concatenate([images(0), images(1)])[:4]
wanted = jax.jit(jax.grad(loss))(weights, given)
with convgrad.jax.accelerate():
    def step(weights, given):
        varying = jax.tree.map(lambda each: jax.lax.pcast(each, "batch", to="varying"), weights)
        return jax.lax.pmean(jax.grad(loss)(varying, given), "batch")
    sharded = jax.jit(jax.shard_map(step, mesh=mesh, in_specs=(P(), P("batch")), out_specs=P()))
    text = sharded.lower(weights, given).as_text()
    assert "@convgrad" in text and "stablehlo.convolution" not in text
    same_numbers(sharded(weights, given), wanted)
print("done")
"""


def test_several_devices() -> None:
    flags = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=2"
    assert work(DEVICES, XLA_FLAGS=flags) == ["done"]


CACHED = """
from jax_bridge.models import images, loss, parameters
import convgrad.jax
jax.config.update("jax_compilation_cache_dir", {folder!r})
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
from jax._src import monitoring
events = []
monitoring.register_event_listener(lambda event, **more: events.append(event))
weights, given = parameters(), images()
with convgrad.jax.accelerate():
    step = jax.jit(jax.value_and_grad(loss))
    value, moves = step(weights, given)
hits = events.count("/jax/compilation_cache/cache_hits")
misses = events.count("/jax/compilation_cache/cache_misses")
print(hits, misses, float(value).hex(), hash(tuple(float(each.sum()) for each in jax.tree.leaves(moves))))
"""


def test_the_persistent_cache(tmp_path: Path) -> None:
    """The second process finds what the first compiled, with its targets registered, and computes the same bits."""
    program = CACHED.format(folder=str(tmp_path))
    first, second = work(program), work(program)
    assert int(first[1]) >= 1 and int(second[0]) >= 1 and second[1] == "0", (first, second)
    assert first[2:] == second[2:]


EXPORTING = r"""
import re
from jax import export
from jax_bridge.models import images, loss, parameters
import convgrad.jax
weights, given = parameters(), images()
with convgrad.jax.accelerate():
    step = jax.jit(jax.value_and_grad(loss))
    names = set(re.findall(r"@(convgrad_\w+)", step.lower(weights, given).as_text()))
    assert len(names) >= 6
    allowed = [export.DisabledSafetyCheck.custom_call(name) for name in names]  # JAX asks for that of every target
    exported = export.export(step, disabled_checks=allowed)(weights, given)
open({file!r}, "wb").write(exported.serialize())
value, moves = exported.call(weights, given)
print(float(value).hex(), hash(tuple(float(each.sum()) for each in jax.tree.leaves(moves))))
"""
LOADING = """
from jax import export
from jax_bridge.models import images, parameters
exported = export.deserialize(bytearray(open({file!r}, "rb").read()))
{before}
value, moves = jax.jit(exported.call)(parameters(), images())
print(float(value).hex(), hash(tuple(float(each.sum()) for each in jax.tree.leaves(moves))))
"""


def test_exported_programs(tmp_path: Path) -> None:
    """Another process runs it after `register`, and says what is missing without."""
    file = str(tmp_path / "exported")
    first = work(EXPORTING.format(file=file))
    second = work(
        LOADING.format(file=file, before="import convgrad.jax; convgrad.jax.register(exported)")
    )
    assert first == second
    without = run(LOADING.format(file=file, before=""))
    # The words are in docs/jax.md, for people who look them up.
    assert without.returncode == 1, without.stderr
    assert "No FFI handler registered for convgrad_" in without.stderr, without.stderr
    twice = "import convgrad.jax; convgrad.jax.register(exported); convgrad.jax.register(exported)"
    assert work(LOADING.format(file=file, before=twice)) == first


FORKED = """
import os
from jax_bridge.configurations import Configuration
from jax_bridge.running import bits, by_us, arriving, operands
import convgrad
configuration = Configuration(size=(33, 40), depth=16, made=32)
arrays, moved = operands(configuration, "float32"), arriving(configuration, "float32")
wanted = bits(by_us(configuration, arrays, moved))
warnings.simplefilter("ignore")  # JAX says that it has threads, which is so
child = os.fork()
if child == 0:
    # JAX's own threads are not here; calls of NumPy's must work all the same, on new threads.
    made = convgrad.conv2d(*arrays, 1, "SAME")
    os._exit(0 if bits([made]) == wanted[: made.nbytes] else 3)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), bits(by_us(configuration, arrays, moved)) == wanted)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_computes() -> None:
    assert work(FORKED) == ["0", "True"]


THREADS = """
import threading
from jax_bridge.configurations import Configuration, some
from jax_bridge.running import bits, by_numpy, arriving, operands, everything, function
chosen = [Configuration(size=(33, 40), depth=16, made=32), *[each for each in some(30, seed=12) if each.plain][:7]]
given = [(*operands(each, "float32"), arriving(each, "float32")) for each in chosen]
wanted = [bits(by_numpy(each, arrays[:2], arrays[2])) for each, arrays in zip(chosen, given)]
calls = [jax.jit(everything(function(each))) for each in chosen]
start, wrong = threading.Barrier(4), []
def use(shift):
    start.wait()
    for at in range(5 * len(calls)):
        which = (at + shift) % len(calls)
        if bits(calls[which](*given[which])) != wanted[which]:
            wrong.append(chosen[which])
threads = [threading.Thread(target=use, args=(shift,)) for shift in (0, 0, 2, 5)]
[each.start() for each in threads]; [each.join() for each in threads]
print(len(wrong))
"""


def test_threads_that_call_at_once() -> None:
    """Also at their first calls, which compile and register."""
    assert work(THREADS) == ["0"]


UNKNOWN = """
import convgrad.jax
from convgrad._bridges.jax import abi
abi.MAJOR = 7  # what we know, so that what is installed is unknown
from jax_bridge.configurations import CONFIGURATIONS, some
from jax_bridge.running import arriving, assert_right, bits, by_numpy, by_us, operands
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    for each in some(12, seed=13):
        arrays, moved = operands(each, "float32"), arriving(each, "float32")
        made = by_us(each, arrays, moved)
        assert_right(each, made, arrays, moved)
        if each.plain:
            assert bits(made) == bits(by_numpy(each, arrays, moved))
told = [str(each.message) for each in seen if "convgrad" in str(each.message)]
assert all("pure_callback" in each and "0." in each for each in told), told
print(len(told), len(seen))
"""


def test_an_unknown_interface_is_not_used() -> None:
    """One warning, the same numbers through Python; derivatives and `vmap` too, which are made of the same sums."""
    assert work(UNKNOWN) == ["1", "1"]


KERNELS = """
from jax_bridge.configurations import some
from jax_bridge.running import arriving, assert_right, by_us, operands
for each in some(10, seed=14):
    for dtype in ("float32", "bfloat16"):
        if each.ours:
            arrays, moved = operands(each, dtype), arriving(each, dtype)
            assert_right(each, by_us(each, arrays, moved), arrays, moved)
print("done")
"""


def test_without_kernels() -> None:
    """The slow reference computes everything, within the same bounds."""
    assert work(KERNELS, CONVGRAD_KERNELS="0") == ["done"]


def test_without_jax() -> None:
    done = run("import sys; sys.modules['jax'] = None\nimport convgrad; import convgrad.jax", "")
    assert done.returncode == 1
    assert "BackendMissingError: convgrad.jax needs JAX, which is not installed" in done.stderr
    assert "pip install jax" in done.stderr


def test_the_order_of_imports() -> None:
    """Neither brings the other in before it is asked for, and both orders work."""
    done = run(
        "import sys, convgrad; assert 'jax' not in sys.modules\n"
        "import jax, jax.numpy as jnp; assert 'convgrad._bridges.jax' not in sys.modules\n"
        "y = convgrad.conv2d(jnp.ones((1, 2, 2, 1)), jnp.ones((2, 2, 1, 1)), 1, 'VALID')\n"
        "assert isinstance(y, jax.Array) and y.item() == 4; assert 'convgrad.jax' not in sys.modules\n"
        "import convgrad.jax\n"
        "print(convgrad.jax.conv2d(jnp.ones((1, 2, 2, 1)), jnp.ones((2, 2, 1, 1)), 1, 'VALID').item())",
        "",
    )
    assert done.stdout.strip() == "4.0", done.stderr


def test_importing_does_not_start_a_backend() -> None:
    """Who imports us may still say how many devices there are, or start a cluster."""
    done = run(
        "import jax, convgrad.jax\n"
        "from jax._src import xla_bridge\n"
        "print(xla_bridge.backends_are_initialized())",
        "",
    )
    assert done.stdout.strip() == "False", done.stderr


def test_the_end_of_a_process_is_quiet() -> None:
    """Arrays, jitted functions, blocks and threads that are still there at the end print nothing."""
    done = run(
        "import jax, jax.numpy as jnp, convgrad.jax\n"
        "block = convgrad.jax.accelerate(); block.__enter__()\n"
        "x, f = jnp.ones((2, 33, 40, 16)), jnp.ones((3, 3, 16, 16))\n"
        "step = jax.jit(jax.grad(lambda f: convgrad.conv2d(x, f, 1, 'SAME').sum()))\n"
        "y = step(f)  # not waited for",
        "",
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


KERAS = """
import keras
import convgrad.jax
def build():
    keras.utils.set_random_seed(0)
    return keras.Sequential([
        keras.layers.Input((12, 12, 3)),
        keras.layers.Conv2D(8, 3, padding="same", activation="relu"),
        keras.layers.DepthwiseConv2D(3, strides=2, padding="same"),
        keras.layers.SeparableConv2D(6, 3, padding="same"),
        keras.layers.Conv2DTranspose(4, 3, strides=2, padding="same"),
        keras.layers.GlobalAveragePooling2D(),
        keras.layers.Dense(2),
    ])
rng = np.random.default_rng(0)
x, y = rng.standard_normal((16, 12, 12, 3)).astype("float32"), rng.integers(0, 2, 16)
def train(model):
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    history = model.fit(x, y, batch_size=8, epochs=2, shuffle=False, verbose=0)
    return history.history["loss"], model.predict(x, verbose=0), model.get_weights()
from convgrad._bridges.jax import sums
bound = []
before = sums.compute
sums.compute = lambda *given: bound.append(given[0]) or before(*given)
wanted = train(build())
assert not bound
with convgrad.jax.accelerate():
    made = train(build())
assert len(bound) >= 5, len(bound)  # a depthwise, a pointwise, a dense and a transposed one
jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5), made, wanted)
print("done")
"""


def test_keras_on_jax() -> None:
    pytest.importorskip("keras")
    assert work(KERAS, KERAS_BACKEND="jax") == ["done"]
