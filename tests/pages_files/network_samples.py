"""Those parts of enuSpace's pages on MNIST that need no file readers, with images of our own; and one of the readers.

Small: the pages have 32 and 64 channels and 28 by 28 cells, these have 4 and 6 channels and 12 by 12 cells.
"""

from __future__ import annotations

import numpy as np

from convgrad._apps.pages.page import Block, Page
from pages_files.sample_parts import descent, floats, lines, matmul, page, variable
from pages_files.writing import block

SIZE, FIRST, SECOND, BATCH = 12, 4, 6, 2
QUARTER = SIZE // 4 * (SIZE // 4)


def numbers(seed: int, *shape: int) -> np.ndarray:
    """Return numbers that six decimals hold, so that text and `.dat` agree."""
    drawn = np.random.default_rng(seed).uniform(-1, 1, shape)
    return floats(np.round(drawn, 4), *shape)


IMAGES = numbers(1, BATCH, SIZE * SIZE)
F1, F2 = numbers(2, 3, 3, 1, FIRST), numbers(3, 3, 3, FIRST, SECOND)
W, B = numbers(4, 10, QUARTER * SECOND), numbers(5, 10)
LABELS = np.array([3, 7], np.int32)


def convolution(id: str, symbol: str, strides: str, attrs: str) -> Block:
    """Return one of the six."""
    return block(id, symbol, strides=strides, padding="SAME", attrs=attrs)


def _forward() -> tuple[list[Block], str]:
    ones = "{1,1,1,1}"
    pool = {"ksize": "{1,2,2,1}", "strides": "1;2;2;1", "padding": "SAME"}
    blocks = [
        variable("ID_IMAGES", IMAGES),
        block("ID_SHAPED", "Reshape", shape=f"{{-1,{SIZE},{SIZE},1}}"),
        variable("ID_F1", F1),
        # The library's own spelling, and the right one.
        convolution("ID_C1", "Conv2D", ones, "data_format_ = NHWC;dialtions_ = {1,1,1,1};use_cudnn_on_gpu_ = true;"),
        block("ID_R1", "Relu"),
        block("ID_P1", "MaxPool", **pool, attrs="data_format_ = NHWC;"),
        variable("ID_F2", F2),
        convolution("ID_C2", "Conv2D", "1;1;1;1", "dilations_={1,1,1,1};data_format_ = NHWC"),
        block("ID_R2", "Relu"),
        block("ID_P2", "MaxPool", **pool, attrs="data_format_ = NHWC;"),
        block("ID_FLAT", "Reshape", shape=f"{{-1,{QUARTER * SECOND}}}"),
        variable("ID_W", W),
        matmul("ID_XW", b="true"),
        variable("ID_B", B),
        block("ID_LOGITS", "Add"),
    ]  # fmt: skip
    wires = """
        ID_IMAGES.ref > ID_SHAPED.tensor
        ID_SHAPED.output > ID_C1.input
        ID_F1.ref > ID_C1.filter
        ID_C1.output > ID_R1.features
        ID_R1.activations > ID_P1.input
        ID_P1.output > ID_C2.input
        ID_F2.ref > ID_C2.filter
        ID_C2.output > ID_R2.features
        ID_R2.activations > ID_P2.input
        ID_P2.output > ID_FLAT.tensor
        ID_FLAT.output > ID_XW.a
        ID_W.ref > ID_XW.b
        ID_XW.product > ID_LOGITS.x
        ID_B.ref > ID_LOGITS.y
    """
    return blocks, wires


def evaluation() -> Page:
    """Page 8 without its readers: two convolutions, and the digit they say."""
    blocks, wires = _forward()
    blocks += [block("ID_DIGIT", "ArgMax", dimension="1"), block("ID_SESSION", "ClientSession")]
    wires += """
        ID_LOGITS.z > ID_DIGIT.input
        ID_DIGIT.output > ID_SESSION.fetch_outputs
    """
    return page("convolution_neural_network_eval", blocks, lines(wires))


def training() -> Page:
    """Page 9 without its readers: gradients drawn by hand, with strides that skip the pooling."""
    blocks, wires = _forward()
    twos, half = "{1,2,2,1}", SIZE // 2
    attrs = "use_cudnn_on_gpu_ = true;dilations_={1,1,1,1};data_format_ = NHWC;"
    sizes = {
        "ID_SIZE_F1": F1.shape,
        "ID_SIZE_F2": F2.shape,
        "ID_SIZE_P1": (BATCH, half, half, FIRST),
        "ID_SIZE_P2": (BATCH, half // 2, half // 2, SECOND),
    }
    blocks += [
        block("ID_LABELS", "Const_ex", val=LABELS, dtype="DT_INT32"),
        block("ID_HOT", "OneHot", depth="10", on_value="1.0f", off_value="0.0f", attrs="axis_=0"),
        block("ID_LOSS", "SoftmaxCrossEntropyWithLogits", features="features", labels="features"),
        matmul("ID_GW", a="true"),
        matmul("ID_BACK"),
        block("ID_G2", "Reshape"),
        *(
            block(id, "Const_ex", val=np.array(shape, np.int32), dtype="DT_INT32")
            for id, shape in sizes.items()
        ),
        convolution("ID_DF2", "Conv2DBackpropFilter", twos, attrs),
        convolution("ID_DP1", "Conv2DBackpropInput", twos, attrs),
        convolution("ID_DF1", "Conv2DBackpropFilter", twos, attrs),
        block("ID_ALPHA", "Const_ex", val=np.float32(0.001), dtype="DT_FLOAT"),
        *(descent(f"ID_NEW_{name}") for name in ("F1", "F2", "W")),
        block("ID_SESSION", "ClientSession"),
    ]
    wires += """
        ID_LABELS.output > ID_HOT.indices
        ID_LOGITS.z > ID_LOSS.features
        ID_HOT.output > ID_LOSS.labels
        ID_LOSS.backprop > ID_GW.a
        ID_FLAT.output > ID_GW.b
        ID_LOSS.backprop > ID_BACK.a
        ID_W.ref > ID_BACK.b
        ID_BACK.product > ID_G2.tensor
        ID_SIZE_P2.output > ID_G2.shape
        ID_P1.output > ID_DF2.input
        ID_SIZE_F2.output > ID_DF2.filter_sizes
        ID_G2.output > ID_DF2.out_backprop
        ID_SIZE_P1.output > ID_DP1.input_sizes
        ID_F2.ref > ID_DP1.filter
        ID_G2.output > ID_DP1.out_backprop
        ID_SHAPED.output > ID_DF1.input
        ID_SIZE_F1.output > ID_DF1.filter_sizes
        ID_DP1.output > ID_DF1.out_backprop
        ID_DF1.output > ID_NEW_F1.delta
        ID_DF2.output > ID_NEW_F2.delta
        ID_GW.product > ID_NEW_W.delta
    """
    for name in ("F1", "F2", "W"):
        wires += f"""
        ID_{name}.ref > ID_NEW_{name}.var
        ID_ALPHA.output > ID_NEW_{name}.alpha
        ID_NEW_{name}.out > ID_SESSION.fetch_outputs
        """
    return page("convolution_neural_network_train", blocks, lines(wires))


def softmax() -> Page:
    """Pages 11 and 12 without their readers: one layer, and its gradient by way of `backprop`."""
    blocks = [
        variable("ID_IMAGE", IMAGES),
        variable("ID_W", numbers(6, SIZE * SIZE, 10)),
        variable("ID_B", B),
        matmul("ID_XW"),
        block("ID_LOGITS", "Add"),
        block("ID_LABELS", "Const_ex", val=LABELS, dtype="DT_INT32"),
        block("ID_HOT", "OneHot", depth="10", on_value="1", off_value="0", attrs="axis_=0"),
        block("ID_TARGETS", "Cast", DstT="DT_FLOAT"),
        block("ID_LOSS", "SoftmaxCrossEntropyWithLogits"),
        matmul("ID_GW", a="true"),
        block("ID_ALPHA", "Const_ex", val=np.float32(0.001), dtype="DT_FLOAT"),
        descent("ID_NEW_W"),
        block("ID_SESSION", "ClientSession"),
    ]
    wires = """
        ID_IMAGE.ref > ID_XW.a
        ID_W.ref > ID_XW.b
        ID_XW.product > ID_LOGITS.x
        ID_B.ref > ID_LOGITS.y
        ID_LABELS.output > ID_HOT.indices
        ID_HOT.output > ID_TARGETS.x
        ID_LOGITS.z > ID_LOSS.features
        ID_TARGETS.y > ID_LOSS.labels
        ID_IMAGE.ref > ID_GW.a
        ID_LOSS.backprop > ID_GW.b
        ID_W.ref > ID_NEW_W.var
        ID_ALPHA.output > ID_NEW_W.alpha
        ID_GW.product > ID_NEW_W.delta
        ID_NEW_W.out > ID_SESSION.fetch_outputs
    """
    return page("mnistTrain_softmax10", blocks, lines(wires))


def reader() -> Page:
    """A page in the manner of page 3: reads a file, which no page may here."""
    path = "C:\\\\Users\\\\someone\\\\Desktop\\\\train-images.idx3-ubyte"
    blocks = [
        block("ID_QUEUE", "FIFOQueue", attrs="SharedName_ = images;"),
        block("ID_NAME", "Const", val=path),
        block("ID_PUT", "QueueEnqueue"),
        block("ID_READER", "FixedLengthRecordReader", record_bytes="784", attrs="header_bytes_=16"),
        block("ID_READ", "ReaderReadUpTo", num_records="1"),
        block("ID_BYTES", "DecodeRaw", out_type="DT_UINT8"),
        block("ID_IMAGE", "Cast", DstT="DT_FLOAT"),
        block("ID_LEFT", "QueueSize"),
        block("ID_SESSION", "ClientSession"),
    ]
    wires = """
        ID_QUEUE.handle > ID_PUT.handle
        ID_NAME.output > ID_PUT.components
        ID_READER.reader_handle > ID_READ.reader_handle
        ID_QUEUE.handle > ID_READ.queue_handle
        ID_READ.values > ID_BYTES.input_bytes
        ID_BYTES.output > ID_IMAGE.x
        ID_QUEUE.handle > ID_LEFT.handle
        ID_IMAGE.y > ID_SESSION.fetch_outputs
        ID_PUT.operation > ID_SESSION.run_outputs
    """
    return page("queueenqueue_mnist_reader", blocks, lines(wires))
