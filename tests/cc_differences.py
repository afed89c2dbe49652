"""Messages of the C++ API that are not TensorFlow's, by the label of their case, and why."""

from __future__ import annotations

REASONS = {
    "ends": "TensorFlow ends the process",
    "computes": "convgrad computes what TensorFlow refuses",
    "earlier": "convgrad finds the mistake while the graph is built, TensorFlow while it runs",
    "refuses": "TensorFlow takes what cannot be meant",
    "words": "the same mistake in other words: TensorFlow's are about its own parts",
}

DIFFERENCES: dict[str, tuple[str, str]] = {
    "Conv2D padding that is none": (
        (
            "Conv2D padding that is none = INVALID_ARGUMENT: Value for attr 'padding' of "
            '"FULL" is not in the list of allowed values: "SAME", "VALID", "EXPLICIT"\\n\\t; '
            "NodeDef: {{node Conv2D}}; Op<name=Conv2D; signature=input:T, filter:T -> output:T; "
            "attr=T:type,allowed=[DT_HALF, DT_BFLOAT16, DT_FLOAT, DT_DOUBLE, DT_INT32]; "
            'attr=strides:list(int); attr=padding:string,allowed=["SAME", "VALID", "EXPLICIT"]; '
            "attr=use_cudnn_on_gpu:bool,default=true; "
            "attr=explicit_paddings:list(int),default=[]; "
            'attr=data_format:string,default="NHWC",allowed=["NHWC", "NCHW"]; '
            "attr=dilations:list(int),default=[1, 1, 1, 1]>"
        ),
        "words",
    ),
    "Conv2D format that is none": (
        (
            "Conv2D format that is none = INVALID_ARGUMENT: Value for attr 'data_format' of "
            '"HWNC2" is not in the list of allowed values: "NHWC", "NCHW"\\n\\t; NodeDef: {{node '
            "Conv2D}}; Op<name=Conv2D; signature=input:T, filter:T -> output:T; "
            "attr=T:type,allowed=[DT_HALF, DT_BFLOAT16, DT_FLOAT, DT_DOUBLE, DT_INT32]; "
            'attr=strides:list(int); attr=padding:string,allowed=["SAME", "VALID", "EXPLICIT"]; '
            "attr=use_cudnn_on_gpu:bool,default=true; "
            "attr=explicit_paddings:list(int),default=[]; "
            'attr=data_format:string,default="NHWC",allowed=["NHWC", "NCHW"]; '
            "attr=dilations:list(int),default=[1, 1, 1, 1]>"
        ),
        "words",
    ),
    "Conv2D dtypes that differ": (
        (
            "Conv2D dtypes that differ = INVALID_ARGUMENT: Inconsistent values for attr 'T' "
            "DT_FLOAT vs. DT_DOUBLE while building NodeDef 'Conv2D' using Op<name=Conv2D; "
            "signature=input:T, filter:T -> output:T; attr=T:type,allowed=[DT_HALF, DT_BFLOAT16, "
            "DT_FLOAT, DT_DOUBLE, DT_INT32]; attr=strides:list(int); "
            'attr=padding:string,allowed=["SAME", "VALID", "EXPLICIT"]; '
            "attr=use_cudnn_on_gpu:bool,default=true; "
            "attr=explicit_paddings:list(int),default=[]; "
            'attr=data_format:string,default="NHWC",allowed=["NHWC", "NCHW"]; '
            "attr=dilations:list(int),default=[1, 1, 1, 1]>"
        ),
        "words",
    ),
    "Conv2D dtype it does not take": (
        (
            "Conv2D dtype it does not take = INVALID_ARGUMENT: Value for attr 'T' of int64 is "
            "not in the list of allowed values: half, bfloat16, float, double, int32\\n\\t; "
            "NodeDef: {{node Conv2D}}; Op<name=Conv2D; signature=input:T, filter:T -> output:T; "
            "attr=T:type,allowed=[DT_HALF, DT_BFLOAT16, DT_FLOAT, DT_DOUBLE, DT_INT32]; "
            'attr=strides:list(int); attr=padding:string,allowed=["SAME", "VALID", "EXPLICIT"]; '
            "attr=use_cudnn_on_gpu:bool,default=true; "
            "attr=explicit_paddings:list(int),default=[]; "
            'attr=data_format:string,default="NHWC",allowed=["NHWC", "NCHW"]; '
            "attr=dilations:list(int),default=[1, 1, 1, 1]>"
        ),
        "words",
    ),
    "Conv2DBackpropInput three sizes": (
        (
            "Conv2DBackpropInput three sizes = INVALID_ARGUMENT: Conv2DBackpropInput requires "
            "input_sizes to contain 4 values or 2 values, but got: 3 for '{{node "
            'Conv2DBackpropInput}} = Conv2DBackpropInput[T=DT_FLOAT, data_format="NHWC", '
            'dilations=[1, 1, 1, 1], explicit_paddings=[], padding="SAME", strides=[1, 1, 1, 1], '
            "use_cudnn_on_gpu=true](Const_2/Const, Const_1, Const)' with input shapes: [3], "
            "[3,3,2,2], [1,4,4,2] and with input tensors computed as partial shapes: input[0] = "
            "[1,4,4]."
        ),
        "words",
    ),
    "Conv2DBackpropInput gradient of another depth": (
        (
            "Conv2DBackpropInput gradient of another depth = INVALID_ARGUMENT: Dimensions must "
            "be equal, but are 3 and 2 for '{{node Conv2DBackpropInput}} = "
            'Conv2DBackpropInput[T=DT_FLOAT, data_format="NHWC", dilations=[1, 1, 1, 1], '
            'explicit_paddings=[], padding="SAME", strides=[1, 1, 1, 1], '
            "use_cudnn_on_gpu=true](Const_2/Const, Const_1, Const)' with input shapes: [4], "
            "[3,3,2,2], [1,4,4,3] and with input tensors computed as partial shapes: input[0] = "
            "[1,4,4,2]."
        ),
        "words",
    ),
    "Conv2DBackpropInput sizes of floats": (
        (
            "Conv2DBackpropInput sizes of floats = INVALID_ARGUMENT: Input 'input_sizes' "
            "passed float expected int32 while building NodeDef 'Conv2DBackpropInput' using "
            "Op<name=Conv2DBackpropInput; signature=input_sizes:int32, filter:T, out_backprop:T "
            "-> output:T; attr=T:type,allowed=[DT_HALF, DT_BFLOAT16, DT_FLOAT, DT_DOUBLE, "
            'DT_INT32]; attr=strides:list(int); attr=padding:string,allowed=["SAME", "VALID", '
            '"EXPLICIT"]; attr=use_cudnn_on_gpu:bool,default=true; '
            "attr=explicit_paddings:list(int),default=[]; "
            'attr=data_format:string,default="NHWC",allowed=["NHWC", "NCHW"]; '
            "attr=dilations:list(int),default=[1, 1, 1, 1]>"
        ),
        "words",
    ),
    "Conv2DBackpropFilter negative size": (
        (
            "Conv2DBackpropFilter negative size = INVALID_ARGUMENT: Invalid value in tensor used "
            "for shape: -3 for '{{node Conv2DBackpropFilter}} = "
            'Conv2DBackpropFilter[T=DT_FLOAT, data_format="NHWC", dilations=[1, 1, 1, 1], '
            'explicit_paddings=[], padding="SAME", strides=[1, 1, 1, 1], '
            "use_cudnn_on_gpu=true](Const_1, Const_2/Const, Const)' with input shapes: "
            "[1,4,4,2], [4], [1,4,4,2] and with input tensors computed as partial shapes: "
            "input[1] = [3,?,2,2]."
        ),
        "words",
    ),
    "depthwise strides that differ": ("depthwise strides that differ = OK", "computes"),
    "depthwise dilated": ("depthwise dilated = OK", "computes"),
    "depthwise NCHW": ("depthwise NCHW = OK", "computes"),
    "depthwise gradient of the filter, three sizes": (
        (
            "depthwise gradient of the filter, three sizes = INVALID_ARGUMENT: Shape must be "
            "rank 4 but is rank 3 for '{{node DepthwiseConv2dNativeBackpropFilter}} = "
            'DepthwiseConv2dNativeBackpropFilter[T=DT_FLOAT, data_format="NHWC", dilations=[1, '
            '1, 1, 1], explicit_paddings=[], padding="SAME", strides=[1, 1, 1, 1]](Const_1, '
            "Const_2/Const, Const)' with input shapes: [1,4,4,2], [3], [1,4,4,4] and with input "
            "tensors computed as partial shapes: input[1] = [3,3,2]."
        ),
        "words",
    ),
    "depthwise gradient of the filter, sizes of long": (
        "depthwise gradient of the filter, sizes of long = OK",
        "computes",
    ),
    "depthwise gradient of the filter, strides that differ": (
        "depthwise gradient of the filter, strides that differ = OK",
        "computes",
    ),
    "depthwise gradient of the filter, stride of zero": (
        (
            "depthwise gradient of the filter, stride of zero = INVALID_ARGUMENT: Row and column "
            "strides should be larger than 0.\\n\\t [[{{node "
            "DepthwiseConv2dNativeBackpropFilter}}]]"
        ),
        "ends",
    ),
    "depthwise gradient of the input, three sizes": (
        (
            "depthwise gradient of the input, three sizes = INVALID_ARGUMENT: Shape must be rank "
            "4 but is rank 3 for '{{node DepthwiseConv2dNativeBackpropInput}} = "
            'DepthwiseConv2dNativeBackpropInput[T=DT_FLOAT, data_format="NHWC", dilations=[1, 1, '
            '1, 1], explicit_paddings=[], padding="SAME", strides=[1, 1, 1, 1]](Const_2/Const, '
            "Const_1, Const)' with input shapes: [3], [3,3,2,2], [1,4,4,4] and with input "
            "tensors computed as partial shapes: input[0] = [1,4,4]."
        ),
        "words",
    ),
    "MatMul of a vector": (
        (
            "MatMul of a vector = INVALID_ARGUMENT: Shape must be rank 2 but is rank 1 for "
            "'{{node MatMul}} = MatMul[T=DT_FLOAT, transpose_a=false, "
            "transpose_b=false](Const/Const, Const_1/Const)' with input shapes: [2], [2,1]."
        ),
        "words",
    ),
    "MatMul sizes": (
        (
            "MatMul sizes = INVALID_ARGUMENT: Dimensions must be equal, but are 2 and 3 for "
            "'{{node MatMul}} = MatMul[T=DT_FLOAT, transpose_a=false, "
            "transpose_b=false](Const/Const, Const_1/Const)' with input shapes: [1,2], [3,1]."
        ),
        "words",
    ),
    "MatMul of integers and floats": (
        (
            "MatMul of integers and floats = INVALID_ARGUMENT: Inconsistent values for attr 'T' "
            "DT_INT32 vs. DT_FLOAT while building NodeDef 'MatMul' using Op<name=MatMul; "
            "signature=a:T, b:T -> product:T; attr=T:type,allowed=[DT_HALF, DT_BFLOAT16, "
            "DT_FLOAT, DT_DOUBLE, DT_INT8, DT_INT16, DT_INT32, DT_INT64, DT_UINT8, DT_UINT16, "
            "DT_UINT32, DT_UINT64]; attr=transpose_a:bool,default=false; "
            "attr=transpose_b:bool,default=false>"
        ),
        "words",
    ),
    "Add of booleans": (
        (
            "Add of booleans = INVALID_ARGUMENT: Value for attr 'T' of bool is not in the list "
            "of allowed values: half, bfloat16, float, double, int8, int16, int32, int64, uint8, "
            "uint16, uint32, uint64\\n\\t; NodeDef: {{node Add}}; Op<name=Add; signature=x:T, "
            "y:T -> z:T; attr=T:type,allowed=[DT_HALF, DT_BFLOAT16, DT_FLOAT, DT_DOUBLE, "
            "DT_INT8, DT_INT16, DT_INT32, DT_INT64, DT_UINT8, DT_UINT16, DT_UINT32, DT_UINT64]>"
        ),
        "words",
    ),
    "Reshape with two unknown sizes": (
        (
            "Reshape with two unknown sizes = INVALID_ARGUMENT: Only one input size may be -1, "
            "not both 0 and 1 for '{{node Reshape}} = Reshape[T=DT_FLOAT, "
            "Tshape=DT_INT32](Const/Const, Const_1/Const)' with input shapes: [3], [2] and with "
            "input tensors computed as partial shapes: input[1] = [?,?]."
        ),
        "earlier",
    ),
    "Reshape to a negative size": (
        (
            "Reshape to a negative size = INVALID_ARGUMENT: Size 0 must be non-negative, not -2 "
            "for '{{node Reshape}} = Reshape[T=DT_FLOAT, Tshape=DT_INT32](Const/Const, "
            "Const_1/Const)' with input shapes: [3], [1] and with input tensors computed as "
            "partial shapes: input[1] = [?]."
        ),
        "words",
    ),
    "Transpose by too few": (
        (
            "Transpose by too few = INVALID_ARGUMENT: Dimension must be 2 but is 1 for '{{node "
            "Transpose}} = Transpose[T=DT_FLOAT, Tperm=DT_INT32](Const/Const, Const_1/Const)' "
            "with input shapes: [1,2], [1] and with computed input tensors: input[1] = <0>."
        ),
        "words",
    ),
    "Transpose by a repeated one": (
        (
            "Transpose by a repeated one = INVALID_ARGUMENT: 1 is missing from {0,0}. for "
            "'{{node Transpose}} = Transpose[T=DT_FLOAT, Tperm=DT_INT32](Const/Const, "
            "Const_1/Const)' with input shapes: [1,2], [2] and with computed input tensors: "
            "input[1] = <0 0>."
        ),
        "earlier",
    ),
    "Mean over an axis twice": (
        (
            "Mean over an axis twice = INVALID_ARGUMENT: Invalid reduction arguments: Axes "
            "contains duplicate dimension: 0 for '{{node Mean}} = Mean[T=DT_FLOAT, "
            "Tidx=DT_INT32, keep_dims=false](Const/Const, Const_1/Const)' with input shapes: "
            "[1,2], [2] and with computed input tensors: input[1] = <0 0>."
        ),
        "earlier",
    ),
    "ArgMax of nothing": (
        (
            "ArgMax of nothing = INVALID_ARGUMENT: Reduction axis 0 is empty in shape [0,2] for "
            "'{{node ArgMax}} = ArgMax[T=DT_FLOAT, Tidx=DT_INT32, output_type=DT_INT64](Const, "
            "Const_1/Const)' with input shapes: [0,2], [] and with computed input tensors: "
            "input[1] = <0>."
        ),
        "earlier",
    ),
    "MaxPool window over the batch": (
        (
            "MaxPool window over the batch = UNIMPLEMENTED: Pooling is not yet supported on the "
            'batch dimension. for \'{{node MaxPool}} = MaxPool[T=DT_FLOAT, data_format="NHWC", '
            'explicit_paddings=[], ksize=[2, 2, 2, 1], padding="SAME", strides=[1, 2, 2, '
            "1]](Const)' with input shapes: [2,4,4,2]."
        ),
        "earlier",
    ),
    "MaxPool three sizes": (
        (
            "MaxPool three sizes = INVALID_ARGUMENT: Sliding window ksize field must specify 4 "
            "dimensions, but got: 3 for '{{node MaxPool}} = MaxPool[T=DT_FLOAT, "
            'data_format="NHWC", explicit_paddings=[], ksize=[1, 2, 2], padding="SAME", '
            "strides=[1, 2, 2, 1]](Const)' with input shapes: [1,4,4,2]."
        ),
        "words",
    ),
    "MaxPool window larger than the image": (
        "MaxPool window larger than the image = OK",
        "computes",
    ),
    "OneHot negative depth": (
        (
            "OneHot negative depth = INVALID_ARGUMENT: Dimension size, given by scalar input 1, "
            "must be non-negative but is -2 for '{{node OneHot}} = OneHot[T=DT_FLOAT, "
            "TI=DT_INT32, axis=-1](Const/Const, Const_1/Const, Const_2/Const, Const_3/Const)' "
            "with input shapes: [2], [], [], [] and with computed input tensors: input[0] = <0 "
            "1>, input[1] = <-2>."
        ),
        "words",
    ),
    "Range of no step": (
        (
            "Range of no step = INVALID_ARGUMENT: Requires delta != 0: 0 for '{{node Range}} = "
            "Range[Tidx=DT_INT32](Const/Const, Const_1/Const, Const_2/Const)' with input shapes: "
            "[], [], [] and with computed input tensors: input[0] = <0>, input[1] = <10>, "
            "input[2] = <0>."
        ),
        "words",
    ),
    "AddN of nothing": (
        (
            "AddN of nothing = INVALID_ARGUMENT: Value for attr 'N' of 0 must be at least "
            "minimum 1\\n\\t; NodeDef: {{node AddN}}; Op<name=AddN; signature=inputs:N*T -> "
            "sum:T; attr=N:int,min=1; attr=T:type,allowed=[DT_HALF, DT_BFLOAT16, DT_FLOAT, "
            "DT_DOUBLE, DT_INT8, DT_INT16, DT_INT32, DT_INT64, DT_UINT8, DT_UINT16, DT_UINT32, "
            "DT_UINT64]>"
        ),
        "words",
    ),
    "RandomNormal of a negative size": (
        (
            "RandomNormal of a negative size = INVALID_ARGUMENT: Dimension -1 must be >= 0 for "
            "'{{node RandomNormal}} = RandomStandardNormal[T=DT_INT32, dtype=DT_FLOAT, seed=0, "
            "seed2=0](Const/Const)' with input shapes: [2] and with input tensors computed as "
            "partial shapes: input[0] = [?,2]."
        ),
        "earlier",
    ),
    "RandomNormal of integers": (
        (
            "RandomNormal of integers = INVALID_ARGUMENT: Value for attr 'dtype' of int32 is not "
            "in the list of allowed values: half, bfloat16, float, double\\n\\t; NodeDef: {{node "
            "RandomNormal}}; Op<name=RandomStandardNormal; signature=shape:T -> output:dtype; "
            "attr=T:type,allowed=[DT_INT32, DT_INT64]; attr=dtype:type,allowed=[DT_HALF, "
            "DT_BFLOAT16, DT_FLOAT, DT_DOUBLE]; attr=seed:int,default=0; "
            "attr=seed2:int,default=0>"
        ),
        "words",
    ),
    "Assign another dtype": (
        (
            "Assign another dtype = INVALID_ARGUMENT: Inconsistent values for attr 'T' DT_FLOAT "
            "vs. DT_INT32 while building NodeDef 'Assign' using Op<name=Assign; "
            "signature=ref:Ref(T), value:T -> output_ref:Ref(T); attr=T:type,allowed=[DT_HALF, "
            "DT_BFLOAT16, DT_FLOAT, DT_DOUBLE, DT_INT8, DT_INT16, DT_INT32, DT_INT64, DT_UINT8, "
            "DT_UINT16, DT_UINT32, DT_UINT64, DT_BOOL]; attr=validate_shape:bool,default=true; "
            "attr=use_locking:bool,default=true>"
        ),
        "words",
    ),
    "Assign to a constant": (
        (
            "Assign to a constant = INVALID_ARGUMENT: Input 'ref' passed float expected ref type "
            "while building NodeDef 'Assign' using Op<name=Assign; signature=ref:Ref(T), value:T "
            "-> output_ref:Ref(T); attr=T:type,allowed=[DT_HALF, DT_BFLOAT16, DT_FLOAT, "
            "DT_DOUBLE, DT_INT8, DT_INT16, DT_INT32, DT_INT64, DT_UINT8, DT_UINT16, DT_UINT32, "
            "DT_UINT64, DT_BOOL]; attr=validate_shape:bool,default=true; "
            "attr=use_locking:bool,default=true>"
        ),
        "words",
    ),
    "input ragged": (
        "input ragged = INVALID_ARGUMENT: Initializer list components should all have the same shape",
        "refuses",
    ),
    "fetch of an output that is not there": (
        "fetch of an output that is not there = NOT_FOUND: FetchOutputs node Const:3: not found",
        "words",
    ),
    "fetch from another graph": (
        "fetch from another graph = NOT_FOUND: FetchOutputs node stranger:0: not found",
        "words",
    ),
    "feed to another graph": (
        "feed to another graph = NOT_FOUND: FeedInputs: unable to find feed output stranger:0: not found",
        "words",
    ),
    "target of another graph": (
        "target of another graph = NOT_FOUND: PruneForTargets: target stranger:0: not found",
        "words",
    ),
    "feed of another shape": (
        (
            "feed of another shape = INVALID_ARGUMENT: Cannot feed value of shape [2] for Tensor "
            "'x:0', which has shape [2,?]"
        ),
        "refuses",
    ),
    "an input of another graph": (
        "an input of another graph = INVALID_ARGUMENT: Input 'x' of Square is 'stranger:0' of another graph",
        "words",
    ),
    "an input that is no output": (
        "an input that is no output = INVALID_ARGUMENT: Input 'x' of Square is the output of no node",
        "refuses",
    ),
    "an input after an error": (
        (
            "an input after an error = INVALID_ARGUMENT: Shape must be rank 2 but is rank 1 for "
            "'{{node MatMul}} = MatMul[T=DT_FLOAT, transpose_a=false, "
            "transpose_b=false](Const/Const, Const_1/Const)' with input shapes: [1], [1]."
        ),
        "words",
    ),
    "an output number that is not there": (
        "an output number that is not there = INVALID_ARGUMENT: Input 'x' of Square is the output of no node",
        "words",
    ),
    "gradient through ArgMax": ("gradient through ArgMax = OK", "computes"),
    "gradient through a filter's gradient": (
        "gradient through a filter's gradient = OK",
        "computes",
    ),
    "gradient through a depthwise filter's gradient": (
        "gradient through a depthwise filter's gradient = OK",
        "computes",
    ),
    "gradient through a ReluGrad": ("gradient through a ReluGrad = OK", "computes"),
}
