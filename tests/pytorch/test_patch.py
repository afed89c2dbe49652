"""`patch` and `unpatch`: PyTorch's own calls are computed by us in between, and by PyTorch before and after."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.func import grad, hessian, vmap

from convgrad import torch as ours
from convgrad._bridges.torch import install, patching
from pytorch.configurations import EDGES, Configuration, some
from pytorch.running import assert_right, bits, everything, function, native, operands


@pytest.fixture(autouse=True)
def nothing_left_behind() -> Iterator[None]:
    assert patching._patches == 0
    yield
    while patching._patches:
        ours.unpatch()


def is_patched() -> bool:
    """Tell who computes: a call of a new kind is met by our handlers, or is not."""
    handlers = install.handlers()
    assert handlers is not None
    handlers.table.clear()
    F.conv2d(torch.ones(1, 1, 3, 3), torch.ones(1, 1, 2, 2))
    return len(handlers.table) == 1


@pytest.mark.parametrize("configuration", some(60, seed=11), ids=str)
def test_pytorchs_calls_become_ours(configuration: Configuration) -> None:
    """The same bits as our own functions, and PyTorch's own again afterwards."""
    tensors = operands(configuration, torch.float32)
    before = everything(native(configuration), tensors)
    with ours.patch():
        made = everything(native(configuration), tensors)
    assert_right(configuration, made, tensors)
    if isinstance(
        configuration.padding, tuple
    ):  # for a word PyTorch may copy the filter, or pad the image first
        assert bits(made) == bits(everything(function(configuration), tensors))
    assert bits(everything(native(configuration), tensors)) == bits(before)


def test_blocks_are_nested() -> None:
    assert not is_patched()
    with ours.patch():
        assert is_patched()
        with ours.patch():
            assert is_patched()
        assert is_patched()
    assert not is_patched()
    patched = ours.patch()
    ours.patch()
    ours.unpatch()
    assert is_patched()
    patched.__exit__(None, None, None)
    patched.__exit__(None, None, None)  # a second end of the same block takes nothing back
    assert not is_patched()
    ours.unpatch()
    assert not is_patched()


def test_a_block_that_fails_is_left() -> None:
    with pytest.raises(ZeroDivisionError), ours.patch():
        1 / 0  # noqa: B018
    assert not is_patched()


def test_from_threads() -> None:
    """Blocks of several threads overlap; the last one out gives PyTorch its kernels back."""
    image, weight = torch.randn(2, 3, 8, 8), torch.randn(4, 3, 3, 3)
    wanted = F.conv2d(image.double(), weight.double())
    errors: list[Any] = []

    def work() -> None:
        try:
            for _ in range(20):
                with ours.patch():
                    made = F.conv2d(image, weight)
                torch.testing.assert_close(made.double(), wanted, rtol=1e-4, atol=1e-4)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert errors == [] and not is_patched()


def test_a_block_holds_for_other_threads() -> None:
    seen: list[bool] = []
    with ours.patch():
        thread = threading.Thread(target=lambda: seen.append(is_patched()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_layers_and_whole_models() -> None:
    model = nn.Sequential(
        nn.Conv2d(3, 6, 3, padding=1),
        nn.BatchNorm2d(6),
        nn.Conv2d(6, 6, 3, groups=6, padding="same"),
        nn.ConvTranspose2d(6, 2, 3, stride=2, output_padding=1),
    ).double()
    image = torch.randn(2, 3, 8, 8, dtype=torch.float64)

    def trained() -> list[torch.Tensor]:
        model.zero_grad()
        made = model(image)
        made.square().sum().backward()
        return [made.detach(), *(p.grad.clone() for p in model.parameters())]

    before = trained()
    with ours.patch():
        assert is_patched()
        torch.testing.assert_close(trained(), before, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("configuration", EDGES[::12], ids=str)
def test_second_derivatives(configuration: Configuration) -> None:
    tensors = operands(configuration, torch.float64)
    with ours.patch():
        assert torch.autograd.gradgradcheck(native(configuration), tensors, fast_mode=True)
        assert torch.autograd.gradcheck(
            native(configuration), tensors, fast_mode=True, check_forward_ad=True
        )


def test_functorch() -> None:
    weight = torch.randn(2, 2, 2, 2, dtype=torch.float64)
    images = torch.randn(3, 1, 2, 4, 4, dtype=torch.float64)

    def loss(weight: Any, image: Any) -> Any:
        return F.conv2d(image, weight).pow(3).sum()

    def all_of() -> Any:
        return (
            vmap(grad(loss), (None, 0))(weight, images),
            hessian(loss)(weight, images[0]),
            vmap(lambda image: F.conv_transpose2d(image, weight))(images),
        )

    before = all_of()
    with ours.patch():
        torch.testing.assert_close(all_of(), before)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_compiled(backend: str) -> None:
    torch._dynamo.reset()
    image = torch.randn(2, 3, 8, 8, dtype=torch.float64)
    weight = torch.randn(4, 3, 3, 3, dtype=torch.float64, requires_grad=True)
    with ours.patch():
        compiled = torch.compile(
            lambda x, f: F.conv2d(x, f, padding=1).relu(), fullgraph=True, backend=backend
        )
        made = compiled(image, weight)
        (gradient,) = torch.autograd.grad(made.sum(), weight)
    theirs = F.conv2d(image, weight, padding=1).relu()
    torch.testing.assert_close(made, theirs)
    torch.testing.assert_close(gradient, torch.autograd.grad(theirs.sum(), weight)[0])


def test_what_we_do_not_compute() -> None:
    """1-D and 3-D images, integers, complex numbers, empty tensors: PyTorch's results, bit for bit."""
    torch.manual_seed(0)
    calls = {
        "1-D": lambda: F.conv1d(torch.ones(2, 3, 8), torch.ones(4, 3, 3)),
        "1-D transposed": lambda: F.conv_transpose1d(torch.ones(2, 3, 8), torch.ones(3, 4, 3)),
        "3-D": lambda: F.conv3d(torch.ones(1, 2, 4, 4, 4), torch.ones(3, 2, 2, 2, 2)),
        "int64": lambda: F.conv2d(
            torch.ones(1, 1, 3, 3, dtype=torch.int64), torch.ones(1, 1, 2, 2, dtype=torch.int64)
        ),
        "complex": lambda: F.conv2d(
            torch.ones(1, 1, 3, 3, dtype=torch.complex64) * 1j,
            torch.ones(1, 1, 2, 2, dtype=torch.complex64),
        ),
        "no images": lambda: F.conv2d(torch.ones(0, 1, 3, 3), torch.ones(2, 1, 2, 2)),
        "no channels": lambda: F.conv2d(torch.ones(1, 0, 3, 3), torch.ones(2, 0, 2, 2)),
        "output padding": lambda: F.conv_transpose2d(
            torch.ones(1, 1, 3, 3), torch.ones(1, 1, 2, 2), dilation=3, output_padding=2
        ),
    }
    for name, call in calls.items():
        before = call()
        with ours.patch():
            made = call()
        assert made.dtype == before.dtype and torch.equal(made, before), name


def test_gradients_of_what_we_do_not_compute() -> None:
    for shape, window, call in (
        ((2, 3, 8), (4, 3, 3), F.conv1d),
        ((1, 2, 4, 4, 4), (3, 2, 2, 2, 2), F.conv3d),
        ((0, 1, 3, 3), (2, 1, 2, 2), F.conv2d),
    ):
        tensors = [torch.ones(each, requires_grad=True) for each in (shape, window)]
        before = torch.autograd.grad(call(*tensors).sum(), tensors)
        with ours.patch():
            made = torch.autograd.grad(call(*tensors).sum(), tensors)
        assert all(torch.equal(*pair) for pair in zip(made, before, strict=True))


@pytest.mark.parametrize(
    "call",
    [
        lambda: F.conv2d(torch.ones(1, 2, 4, 4), torch.ones(3, 3, 2, 2)),
        lambda: F.conv2d(torch.ones(1, 2, 1, 1), torch.ones(3, 2, 2, 2)),
        lambda: F.conv2d(torch.ones(1, 2, 4, 4), torch.ones(3, 2, 2, 2), torch.ones(2)),
        lambda: F.conv2d(torch.ones(1, 2, 4, 4), torch.ones(3, 2, 2, 2), stride=0),
        lambda: F.conv2d(torch.ones(1, 2, 4, 4), torch.ones(3, 2, 2, 2), padding=-1),
        lambda: F.conv2d(torch.ones(1, 2, 4, 4), torch.ones(3, 2, 2, 2), groups=0),
        lambda: F.conv2d(torch.ones(1, 2, 4, 4), torch.ones(3, 2, 2, 2).double()),
        lambda: F.conv_transpose2d(
            torch.ones(1, 2, 4, 4), torch.ones(2, 2, 2, 2), output_padding=1
        ),
        lambda: F.conv2d(torch.ones(2, 2), torch.ones(3, 2, 2, 2)),
    ],
    ids=[
        *("channels", "too small", "bias", "stride", "padding", "groups", "dtypes"),
        *("output padding", "dimensions"),
    ],
)
def test_errors_are_pytorchs(call: Any) -> None:
    with pytest.raises(RuntimeError) as before:
        call()
    with ours.patch(), pytest.raises(RuntimeError) as now:
        call()
    assert str(now.value).partition("\n\nAt:")[0].removeprefix("RuntimeError: ") == str(
        before.value
    )
    assert not is_patched()


def test_a_backward_pass_after_the_block() -> None:
    """It uses the kernels that are in place when it runs."""
    image = torch.randn(1, 2, 5, 5, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(3, 2, 3, 3, dtype=torch.float64, requires_grad=True)
    with ours.patch():
        inside = F.conv2d(image, weight).square().sum()
    outside = F.conv2d(image, weight).square().sum()
    mine = torch.autograd.grad(inside, [image, weight])
    with ours.patch():
        theirs = torch.autograd.grad(outside, [image, weight])
    torch.testing.assert_close(mine, theirs)


def test_without_compiled_handlers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same kernels as Python functions: with a PyTorch that has not what handlers need."""
    monkeypatch.setattr(install, "_handlers", None)
    asked = []
    original = install.kernels.declined_forward
    monkeypatch.setattr(
        install.kernels,
        "declined_forward",
        lambda *operands: asked.append(1) or original(*operands),
    )
    image, weight = torch.randn(1, 2, 5, 5), torch.randn(3, 2, 3, 3)
    before = F.conv2d(image, weight)
    with ours.patch():
        made = F.conv2d(image, weight)
    assert asked == [1]
    torch.testing.assert_close(made, before)
    assert torch.equal(F.conv2d(image, weight), before) and asked == [1]
