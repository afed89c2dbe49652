"""Types of the ops. Written by tools/graph_stubs.py from the table of ops: change the table, not this file."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from .._apps.graph.classes import Attrs as _Attrs
from .._apps.graph.classes import InputList as InputList
from .._apps.graph.classes import Op as _Op
from .._apps.graph.operation import Operation, Output
from .._apps.graph.scope import Scope

_Array: TypeAlias = np.ndarray[Any, np.dtype[Any]] | np.generic
_Tensor: TypeAlias = Output | Operation | _Op | _Array | float | Sequence[Any]
_Tensors: TypeAlias = InputList | Sequence[_Tensor]
_Ints: TypeAlias = Sequence[int] | np.ndarray[Any, np.dtype[Any]]
_Shape: TypeAlias = Sequence[int | None] | np.ndarray[Any, np.dtype[Any]] | int | None
_Dtype: TypeAlias = str | type | np.dtype[Any]

class Conv2D(_Op):
    output: Output
    class Attrs(_Attrs):
        def UseCudnnOnGpu(self, value: bool) -> Conv2D.Attrs: ...
        def ExplicitPaddings(self, value: _Ints) -> Conv2D.Attrs: ...
        def DataFormat(self, value: str) -> Conv2D.Attrs: ...
        def Dilations(self, value: _Ints) -> Conv2D.Attrs: ...

    @staticmethod
    def UseCudnnOnGpu(value: bool) -> Conv2D.Attrs: ...
    @staticmethod
    def ExplicitPaddings(value: _Ints) -> Conv2D.Attrs: ...
    @staticmethod
    def DataFormat(value: str) -> Conv2D.Attrs: ...
    @staticmethod
    def Dilations(value: _Ints) -> Conv2D.Attrs: ...
    def __init__(
        self,
        scope: Scope,
        input: _Tensor,
        filter: _Tensor,
        strides: _Ints,
        padding: str,
        attrs: Conv2D.Attrs | None = None,
        *,
        use_cudnn_on_gpu: bool = True,
        explicit_paddings: _Ints = ...,
        data_format: str = "NHWC",
        dilations: _Ints = ...,
    ) -> None: ...

class Conv2DBackpropInput(_Op):
    output: Output
    class Attrs(_Attrs):
        def UseCudnnOnGpu(self, value: bool) -> Conv2DBackpropInput.Attrs: ...
        def ExplicitPaddings(self, value: _Ints) -> Conv2DBackpropInput.Attrs: ...
        def DataFormat(self, value: str) -> Conv2DBackpropInput.Attrs: ...
        def Dilations(self, value: _Ints) -> Conv2DBackpropInput.Attrs: ...

    @staticmethod
    def UseCudnnOnGpu(value: bool) -> Conv2DBackpropInput.Attrs: ...
    @staticmethod
    def ExplicitPaddings(value: _Ints) -> Conv2DBackpropInput.Attrs: ...
    @staticmethod
    def DataFormat(value: str) -> Conv2DBackpropInput.Attrs: ...
    @staticmethod
    def Dilations(value: _Ints) -> Conv2DBackpropInput.Attrs: ...
    def __init__(
        self,
        scope: Scope,
        input_sizes: _Tensor,
        filter: _Tensor,
        out_backprop: _Tensor,
        strides: _Ints,
        padding: str,
        attrs: Conv2DBackpropInput.Attrs | None = None,
        *,
        use_cudnn_on_gpu: bool = True,
        explicit_paddings: _Ints = ...,
        data_format: str = "NHWC",
        dilations: _Ints = ...,
    ) -> None: ...

class Conv2DBackpropFilter(_Op):
    output: Output
    class Attrs(_Attrs):
        def UseCudnnOnGpu(self, value: bool) -> Conv2DBackpropFilter.Attrs: ...
        def ExplicitPaddings(self, value: _Ints) -> Conv2DBackpropFilter.Attrs: ...
        def DataFormat(self, value: str) -> Conv2DBackpropFilter.Attrs: ...
        def Dilations(self, value: _Ints) -> Conv2DBackpropFilter.Attrs: ...

    @staticmethod
    def UseCudnnOnGpu(value: bool) -> Conv2DBackpropFilter.Attrs: ...
    @staticmethod
    def ExplicitPaddings(value: _Ints) -> Conv2DBackpropFilter.Attrs: ...
    @staticmethod
    def DataFormat(value: str) -> Conv2DBackpropFilter.Attrs: ...
    @staticmethod
    def Dilations(value: _Ints) -> Conv2DBackpropFilter.Attrs: ...
    def __init__(
        self,
        scope: Scope,
        input: _Tensor,
        filter_sizes: _Tensor,
        out_backprop: _Tensor,
        strides: _Ints,
        padding: str,
        attrs: Conv2DBackpropFilter.Attrs | None = None,
        *,
        use_cudnn_on_gpu: bool = True,
        explicit_paddings: _Ints = ...,
        data_format: str = "NHWC",
        dilations: _Ints = ...,
    ) -> None: ...

class DepthwiseConv2dNative(_Op):
    output: Output
    class Attrs(_Attrs):
        def ExplicitPaddings(self, value: _Ints) -> DepthwiseConv2dNative.Attrs: ...
        def DataFormat(self, value: str) -> DepthwiseConv2dNative.Attrs: ...
        def Dilations(self, value: _Ints) -> DepthwiseConv2dNative.Attrs: ...

    @staticmethod
    def ExplicitPaddings(value: _Ints) -> DepthwiseConv2dNative.Attrs: ...
    @staticmethod
    def DataFormat(value: str) -> DepthwiseConv2dNative.Attrs: ...
    @staticmethod
    def Dilations(value: _Ints) -> DepthwiseConv2dNative.Attrs: ...
    def __init__(
        self,
        scope: Scope,
        input: _Tensor,
        filter: _Tensor,
        strides: _Ints,
        padding: str,
        attrs: DepthwiseConv2dNative.Attrs | None = None,
        *,
        explicit_paddings: _Ints = ...,
        data_format: str = "NHWC",
        dilations: _Ints = ...,
    ) -> None: ...

class DepthwiseConv2dNativeBackpropInput(_Op):
    output: Output
    class Attrs(_Attrs):
        def ExplicitPaddings(self, value: _Ints) -> DepthwiseConv2dNativeBackpropInput.Attrs: ...
        def DataFormat(self, value: str) -> DepthwiseConv2dNativeBackpropInput.Attrs: ...
        def Dilations(self, value: _Ints) -> DepthwiseConv2dNativeBackpropInput.Attrs: ...

    @staticmethod
    def ExplicitPaddings(value: _Ints) -> DepthwiseConv2dNativeBackpropInput.Attrs: ...
    @staticmethod
    def DataFormat(value: str) -> DepthwiseConv2dNativeBackpropInput.Attrs: ...
    @staticmethod
    def Dilations(value: _Ints) -> DepthwiseConv2dNativeBackpropInput.Attrs: ...
    def __init__(
        self,
        scope: Scope,
        input_sizes: _Tensor,
        filter: _Tensor,
        out_backprop: _Tensor,
        strides: _Ints,
        padding: str,
        attrs: DepthwiseConv2dNativeBackpropInput.Attrs | None = None,
        *,
        explicit_paddings: _Ints = ...,
        data_format: str = "NHWC",
        dilations: _Ints = ...,
    ) -> None: ...

class DepthwiseConv2dNativeBackpropFilter(_Op):
    output: Output
    class Attrs(_Attrs):
        def ExplicitPaddings(self, value: _Ints) -> DepthwiseConv2dNativeBackpropFilter.Attrs: ...
        def DataFormat(self, value: str) -> DepthwiseConv2dNativeBackpropFilter.Attrs: ...
        def Dilations(self, value: _Ints) -> DepthwiseConv2dNativeBackpropFilter.Attrs: ...

    @staticmethod
    def ExplicitPaddings(value: _Ints) -> DepthwiseConv2dNativeBackpropFilter.Attrs: ...
    @staticmethod
    def DataFormat(value: str) -> DepthwiseConv2dNativeBackpropFilter.Attrs: ...
    @staticmethod
    def Dilations(value: _Ints) -> DepthwiseConv2dNativeBackpropFilter.Attrs: ...
    def __init__(
        self,
        scope: Scope,
        input: _Tensor,
        filter_sizes: _Tensor,
        out_backprop: _Tensor,
        strides: _Ints,
        padding: str,
        attrs: DepthwiseConv2dNativeBackpropFilter.Attrs | None = None,
        *,
        explicit_paddings: _Ints = ...,
        data_format: str = "NHWC",
        dilations: _Ints = ...,
    ) -> None: ...

class Const(_Op):
    output: Output
    def __init__(
        self,
        scope: Scope,
        value: _Array | float | Sequence[Any],
        dtype: _Dtype | None = None,
        shape: _Shape = None,
    ) -> None: ...

class Placeholder(_Op):
    output: Output
    class Attrs(_Attrs):
        def Shape(self, value: _Shape) -> Placeholder.Attrs: ...

    @staticmethod
    def Shape(value: _Shape) -> Placeholder.Attrs: ...
    def __init__(
        self,
        scope: Scope,
        dtype: _Dtype,
        shape: _Shape | Placeholder.Attrs = None,
        attrs: Placeholder.Attrs | None = None,
    ) -> None: ...

class RandomNormal(_Op):
    output: Output
    class Attrs(_Attrs):
        def Seed(self, value: int) -> RandomNormal.Attrs: ...
        def Seed2(self, value: int) -> RandomNormal.Attrs: ...

    @staticmethod
    def Seed(value: int) -> RandomNormal.Attrs: ...
    @staticmethod
    def Seed2(value: int) -> RandomNormal.Attrs: ...
    def __init__(
        self,
        scope: Scope,
        shape: _Tensor,
        dtype: _Dtype,
        attrs: RandomNormal.Attrs | None = None,
        *,
        seed: int = 0,
        seed2: int = 0,
    ) -> None: ...

class RandomUniform(_Op):
    output: Output
    class Attrs(_Attrs):
        def Seed(self, value: int) -> RandomUniform.Attrs: ...
        def Seed2(self, value: int) -> RandomUniform.Attrs: ...

    @staticmethod
    def Seed(value: int) -> RandomUniform.Attrs: ...
    @staticmethod
    def Seed2(value: int) -> RandomUniform.Attrs: ...
    def __init__(
        self,
        scope: Scope,
        shape: _Tensor,
        dtype: _Dtype,
        attrs: RandomUniform.Attrs | None = None,
        *,
        seed: int = 0,
        seed2: int = 0,
    ) -> None: ...

class Range(_Op):
    output: Output
    def __init__(
        self,
        scope: Scope,
        start: _Tensor,
        limit: _Tensor,
        delta: _Tensor,
    ) -> None: ...

class Shape(_Op):
    output: Output
    class Attrs(_Attrs):
        def OutType(self, value: _Dtype) -> Shape.Attrs: ...

    @staticmethod
    def OutType(value: _Dtype) -> Shape.Attrs: ...
    def __init__(
        self,
        scope: Scope,
        input: _Tensor,
        attrs: Shape.Attrs | None = None,
        *,
        out_type: _Dtype = ...,
    ) -> None: ...

class Reshape(_Op):
    output: Output
    def __init__(
        self,
        scope: Scope,
        tensor: _Tensor,
        shape: _Tensor,
    ) -> None: ...

class Transpose(_Op):
    y: Output
    def __init__(
        self,
        scope: Scope,
        x: _Tensor,
        perm: _Tensor,
    ) -> None: ...

class InvertPermutation(_Op):
    y: Output
    def __init__(
        self,
        scope: Scope,
        x: _Tensor,
    ) -> None: ...

class Cast(_Op):
    y: Output
    def __init__(
        self,
        scope: Scope,
        x: _Tensor,
        DstT: _Dtype,
    ) -> None: ...

class OneHot(_Op):
    output: Output
    class Attrs(_Attrs):
        def Axis(self, value: int) -> OneHot.Attrs: ...

    @staticmethod
    def Axis(value: int) -> OneHot.Attrs: ...
    def __init__(
        self,
        scope: Scope,
        indices: _Tensor,
        depth: _Tensor,
        on_value: _Tensor,
        off_value: _Tensor,
        attrs: OneHot.Attrs | None = None,
        *,
        axis: int = -1,
    ) -> None: ...

class BroadcastTo(_Op):
    output: Output
    def __init__(
        self,
        scope: Scope,
        input: _Tensor,
        shape: _Tensor,
    ) -> None: ...

class SumToShape(_Op):
    output: Output
    def __init__(
        self,
        scope: Scope,
        input: _Tensor,
        shape: _Tensor,
    ) -> None: ...

class Add(_Op):
    z: Output
    def __init__(
        self,
        scope: Scope,
        x: _Tensor,
        y: _Tensor,
    ) -> None: ...

class Subtract(_Op):
    z: Output
    def __init__(
        self,
        scope: Scope,
        x: _Tensor,
        y: _Tensor,
    ) -> None: ...

class Multiply(_Op):
    z: Output
    def __init__(
        self,
        scope: Scope,
        x: _Tensor,
        y: _Tensor,
    ) -> None: ...

class Div(_Op):
    z: Output
    def __init__(
        self,
        scope: Scope,
        x: _Tensor,
        y: _Tensor,
    ) -> None: ...

class AddN(_Op):
    sum: Output
    def __init__(
        self,
        scope: Scope,
        inputs: _Tensors,
    ) -> None: ...

class Equal(_Op):
    z: Output
    def __init__(
        self,
        scope: Scope,
        x: _Tensor,
        y: _Tensor,
    ) -> None: ...

class Negate(_Op):
    y: Output
    def __init__(
        self,
        scope: Scope,
        x: _Tensor,
    ) -> None: ...

class Square(_Op):
    y: Output
    def __init__(
        self,
        scope: Scope,
        x: _Tensor,
    ) -> None: ...

class Sqrt(_Op):
    y: Output
    def __init__(
        self,
        scope: Scope,
        x: _Tensor,
    ) -> None: ...

class Exp(_Op):
    y: Output
    def __init__(
        self,
        scope: Scope,
        x: _Tensor,
    ) -> None: ...

class Log(_Op):
    y: Output
    def __init__(
        self,
        scope: Scope,
        x: _Tensor,
    ) -> None: ...

class Tanh(_Op):
    y: Output
    def __init__(
        self,
        scope: Scope,
        x: _Tensor,
    ) -> None: ...

class Sigmoid(_Op):
    y: Output
    def __init__(
        self,
        scope: Scope,
        x: _Tensor,
    ) -> None: ...

class MatMul(_Op):
    product: Output
    class Attrs(_Attrs):
        def TransposeA(self, value: bool) -> MatMul.Attrs: ...
        def TransposeB(self, value: bool) -> MatMul.Attrs: ...

    @staticmethod
    def TransposeA(value: bool) -> MatMul.Attrs: ...
    @staticmethod
    def TransposeB(value: bool) -> MatMul.Attrs: ...
    def __init__(
        self,
        scope: Scope,
        a: _Tensor,
        b: _Tensor,
        attrs: MatMul.Attrs | None = None,
        *,
        transpose_a: bool = False,
        transpose_b: bool = False,
    ) -> None: ...

class Sum(_Op):
    output: Output
    class Attrs(_Attrs):
        def KeepDims(self, value: bool) -> Sum.Attrs: ...

    @staticmethod
    def KeepDims(value: bool) -> Sum.Attrs: ...
    def __init__(
        self,
        scope: Scope,
        input: _Tensor,
        axis: _Tensor,
        attrs: Sum.Attrs | None = None,
        *,
        keep_dims: bool = False,
    ) -> None: ...

class Mean(_Op):
    output: Output
    class Attrs(_Attrs):
        def KeepDims(self, value: bool) -> Mean.Attrs: ...

    @staticmethod
    def KeepDims(value: bool) -> Mean.Attrs: ...
    def __init__(
        self,
        scope: Scope,
        input: _Tensor,
        axis: _Tensor,
        attrs: Mean.Attrs | None = None,
        *,
        keep_dims: bool = False,
    ) -> None: ...

class SpreadReduced(_Op):
    output: Output
    class Attrs(_Attrs):
        def Mean(self, value: bool) -> SpreadReduced.Attrs: ...

    @staticmethod
    def Mean(value: bool) -> SpreadReduced.Attrs: ...
    def __init__(
        self,
        scope: Scope,
        input: _Tensor,
        axis: _Tensor,
        shape: _Tensor,
        attrs: SpreadReduced.Attrs | None = None,
        *,
        mean: bool = False,
    ) -> None: ...

class L2Loss(_Op):
    output: Output
    def __init__(
        self,
        scope: Scope,
        t: _Tensor,
    ) -> None: ...

class ArgMax(_Op):
    output: Output
    class Attrs(_Attrs):
        def OutputType(self, value: _Dtype) -> ArgMax.Attrs: ...

    @staticmethod
    def OutputType(value: _Dtype) -> ArgMax.Attrs: ...
    def __init__(
        self,
        scope: Scope,
        input: _Tensor,
        dimension: _Tensor,
        attrs: ArgMax.Attrs | None = None,
        *,
        output_type: _Dtype = ...,
    ) -> None: ...

class Relu(_Op):
    activations: Output
    def __init__(
        self,
        scope: Scope,
        features: _Tensor,
    ) -> None: ...

class ReluGrad(_Op):
    backprops: Output
    def __init__(
        self,
        scope: Scope,
        gradients: _Tensor,
        features: _Tensor,
    ) -> None: ...

class BiasAdd(_Op):
    output: Output
    class Attrs(_Attrs):
        def DataFormat(self, value: str) -> BiasAdd.Attrs: ...

    @staticmethod
    def DataFormat(value: str) -> BiasAdd.Attrs: ...
    def __init__(
        self,
        scope: Scope,
        value: _Tensor,
        bias: _Tensor,
        attrs: BiasAdd.Attrs | None = None,
        *,
        data_format: str = "NHWC",
    ) -> None: ...

class BiasAddGrad(_Op):
    output: Output
    class Attrs(_Attrs):
        def DataFormat(self, value: str) -> BiasAddGrad.Attrs: ...

    @staticmethod
    def DataFormat(value: str) -> BiasAddGrad.Attrs: ...
    def __init__(
        self,
        scope: Scope,
        out_backprop: _Tensor,
        attrs: BiasAddGrad.Attrs | None = None,
        *,
        data_format: str = "NHWC",
    ) -> None: ...

class Softmax(_Op):
    softmax: Output
    def __init__(
        self,
        scope: Scope,
        logits: _Tensor,
    ) -> None: ...

class LogSoftmax(_Op):
    logsoftmax: Output
    def __init__(
        self,
        scope: Scope,
        logits: _Tensor,
    ) -> None: ...

class SoftmaxCrossEntropyWithLogits(_Op):
    loss: Output
    backprop: Output
    def __init__(
        self,
        scope: Scope,
        features: _Tensor,
        labels: _Tensor,
    ) -> None: ...

class MaxPool(_Op):
    output: Output
    class Attrs(_Attrs):
        def ExplicitPaddings(self, value: _Ints) -> MaxPool.Attrs: ...
        def DataFormat(self, value: str) -> MaxPool.Attrs: ...

    @staticmethod
    def ExplicitPaddings(value: _Ints) -> MaxPool.Attrs: ...
    @staticmethod
    def DataFormat(value: str) -> MaxPool.Attrs: ...
    def __init__(
        self,
        scope: Scope,
        input: _Tensor,
        ksize: _Ints,
        strides: _Ints,
        padding: str,
        attrs: MaxPool.Attrs | None = None,
        *,
        explicit_paddings: _Ints = ...,
        data_format: str = "NHWC",
    ) -> None: ...

class MaxPoolGrad(_Op):
    output: Output
    class Attrs(_Attrs):
        def ExplicitPaddings(self, value: _Ints) -> MaxPoolGrad.Attrs: ...
        def DataFormat(self, value: str) -> MaxPoolGrad.Attrs: ...

    @staticmethod
    def ExplicitPaddings(value: _Ints) -> MaxPoolGrad.Attrs: ...
    @staticmethod
    def DataFormat(value: str) -> MaxPoolGrad.Attrs: ...
    def __init__(
        self,
        scope: Scope,
        orig_input: _Tensor,
        orig_output: _Tensor,
        grad: _Tensor,
        ksize: _Ints,
        strides: _Ints,
        padding: str,
        attrs: MaxPoolGrad.Attrs | None = None,
        *,
        explicit_paddings: _Ints = ...,
        data_format: str = "NHWC",
    ) -> None: ...

class MaxPoolGradGrad(_Op):
    output: Output
    class Attrs(_Attrs):
        def ExplicitPaddings(self, value: _Ints) -> MaxPoolGradGrad.Attrs: ...
        def DataFormat(self, value: str) -> MaxPoolGradGrad.Attrs: ...

    @staticmethod
    def ExplicitPaddings(value: _Ints) -> MaxPoolGradGrad.Attrs: ...
    @staticmethod
    def DataFormat(value: str) -> MaxPoolGradGrad.Attrs: ...
    def __init__(
        self,
        scope: Scope,
        orig_input: _Tensor,
        orig_output: _Tensor,
        grad: _Tensor,
        ksize: _Ints,
        strides: _Ints,
        padding: str,
        attrs: MaxPoolGradGrad.Attrs | None = None,
        *,
        explicit_paddings: _Ints = ...,
        data_format: str = "NHWC",
    ) -> None: ...

class Variable(_Op):
    ref: Output
    class Attrs(_Attrs):
        def Container(self, value: str) -> Variable.Attrs: ...
        def SharedName(self, value: str) -> Variable.Attrs: ...

    @staticmethod
    def Container(value: str) -> Variable.Attrs: ...
    @staticmethod
    def SharedName(value: str) -> Variable.Attrs: ...
    def __init__(
        self,
        scope: Scope,
        shape: _Shape,
        dtype: _Dtype,
        attrs: Variable.Attrs | None = None,
        *,
        container: str = "",
        shared_name: str = "",
    ) -> None: ...

class Assign(_Op):
    output_ref: Output
    class Attrs(_Attrs):
        def ValidateShape(self, value: bool) -> Assign.Attrs: ...
        def UseLocking(self, value: bool) -> Assign.Attrs: ...

    @staticmethod
    def ValidateShape(value: bool) -> Assign.Attrs: ...
    @staticmethod
    def UseLocking(value: bool) -> Assign.Attrs: ...
    def __init__(
        self,
        scope: Scope,
        ref: _Tensor,
        value: _Tensor,
        attrs: Assign.Attrs | None = None,
        *,
        validate_shape: bool = True,
        use_locking: bool = True,
    ) -> None: ...

class ApplyGradientDescent(_Op):
    out: Output
    class Attrs(_Attrs):
        def UseLocking(self, value: bool) -> ApplyGradientDescent.Attrs: ...

    @staticmethod
    def UseLocking(value: bool) -> ApplyGradientDescent.Attrs: ...
    def __init__(
        self,
        scope: Scope,
        var: _Tensor,
        alpha: _Tensor,
        delta: _Tensor,
        attrs: ApplyGradientDescent.Attrs | None = None,
        *,
        use_locking: bool = False,
    ) -> None: ...
