"""The C++ API member by member, beside TensorFlow's documentation: what compiles unchanged, and what does not.

`python tools/cc_surface.py` compiles one use of every member with this machine's compiler, and writes
`docs/cpp-surface.md` from what compiled. `--program FILE` writes the uses as a program instead, for TensorFlow's
headers.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
INCLUDE = ROOT / "src" / "convgrad" / "include"
PAGE = ROOT / "docs" / "cpp-surface.md"

FILTER = "DepthwiseConv2dNativeBackpropFilter"
# Per class: what is documented, and a statement that uses it.
USES: dict[str, dict[str, str]] = {
    f"ops::{FILTER}": {
        "constructor without attrs": (
            f'ops::{FILTER} op(scope, output, {{3, 3, 2, 2}}, output, {{1, 1, 1, 1}}, "SAME"); '
            "(void)op;"
        ),
        "constructor with attrs": (
            f'ops::{FILTER} op(scope, output, sizes, output, strides, StringPiece("SAME"), '
            f"ops::{FILTER}::Attrs()); (void)op;"
        ),
        "operation": "Operation found = filter.operation; (void)found;",
        "output": "Output found = filter.output; (void)found;",
        "operator ::tensorflow::Output": "Output found = filter; (void)found;",
        "operator ::tensorflow::Input": "Input found = filter; (void)found;",
        "node": "Node* found = filter.node(); (void)found;",
        "DataFormat": f'auto attrs = ops::{FILTER}::DataFormat("NHWC"); (void)attrs;',
        "Dilations": f"auto attrs = ops::{FILTER}::Dilations({{1, 1, 1, 1}}); (void)attrs;",
        "ExplicitPaddings": f"auto attrs = ops::{FILTER}::ExplicitPaddings({{}}); (void)attrs;",
        "Attrs::DataFormat": f'auto attrs = ops::{FILTER}::Attrs().DataFormat("NHWC"); (void)attrs;',
        "Attrs::Dilations": f"auto attrs = ops::{FILTER}::Attrs().Dilations({{1, 1, 1, 1}}); (void)attrs;",
        "Attrs::ExplicitPaddings": f"auto attrs = ops::{FILTER}::Attrs().ExplicitPaddings({{}}); (void)attrs;",
        "Attrs::data_format_": f"StringPiece found = ops::{FILTER}::Attrs().data_format_; (void)found;",
        "Attrs::dilations_": f"auto found = ops::{FILTER}::Attrs().dilations_.size(); (void)found;",
        "Attrs::explicit_paddings_": f"auto found = ops::{FILTER}::Attrs().explicit_paddings_.size(); (void)found;",
    },
    "Scope": {
        "copy": "Scope other(scope); other = scope;",
        "NewRootScope": "Scope other = Scope::NewRootScope();",
        "NewSubScope": 'Scope other = scope.NewSubScope("a");',
        "WithOpName": 'Scope other = scope.WithOpName("a", 1, "b");',
        "WithControlDependencies(list)": (
            "Scope other = scope.WithControlDependencies(std::vector<Operation>{operation});"
        ),
        "WithControlDependencies(output)": "Scope other = scope.WithControlDependencies(output);",
        "WithNoControlDependencies": "Scope other = scope.WithNoControlDependencies();",
        "WithDevice": 'Scope other = scope.WithDevice("/cpu:0");',
        "WithAssignedDevice": 'Scope other = scope.WithAssignedDevice("/cpu:0");',
        "WithXlaCluster": 'Scope other = scope.WithXlaCluster("a");',
        "ColocateWith": "Scope other = scope.ColocateWith(operation); other = scope.ColocateWith(output);",
        "ClearColocation": "Scope other = scope.ClearColocation();",
        "ExitOnError": "Scope other = scope.ExitOnError();",
        "WithKernelLabel": 'Scope other = scope.WithKernelLabel("a");',
        "GetUniqueNameForOp": 'std::string name = scope.GetUniqueNameForOp("a");',
        "UpdateStatus": "scope.UpdateStatus(Status());",
        "UpdateBuilder": "NodeBuilder* builder = nullptr; scope.UpdateBuilder(builder);",
        "GetCompositeOpScopes": 'CompositeOpScopes scopes = scope.GetCompositeOpScopes("a");',
        "ok": "bool found = scope.ok(); (void)found;",
        "status": "Status found = scope.status();",
        "graph": "Graph* found = scope.graph(); (void)found;",
        "graph_as_shared_ptr": "std::shared_ptr<Graph> found = scope.graph_as_shared_ptr();",
        "ToGraphDef": "GraphDef* graph = nullptr; Status found = scope.ToGraphDef(graph);",
        "ToGraph": "Graph* graph = nullptr; Status found = scope.ToGraph(graph);",
        "DoShapeInference": "Status found = scope.DoShapeInference(output.node());",
        "DisabledShapeInferenceScope": "Scope other = Scope::DisabledShapeInferenceScope();",
        "control_deps": "const std::vector<Operation>& found = scope.control_deps(); (void)found;",
    },
    "ClientSession": {
        "ClientSession(scope)": "ClientSession other(scope);",
        "ClientSession(scope, target)": 'ClientSession other(scope, std::string(""));',
        "ClientSession(scope, options)": "ClientSession other(scope, SessionOptions());",
        "FeedType": "ClientSession::FeedType feeds = {{output, 1.f}};",
        "Run(fetches)": "Status found = session.Run({output}, &outputs);",
        "Run(feeds, fetches)": "Status found = session.Run({{output, {{1.f}}}}, {output}, &outputs);",
        "Run(feeds, fetches, targets)": "Status found = session.Run({{output, 1.f}}, {output}, {operation}, &outputs);",
        "Run(options, ..., metadata)": (
            "RunMetadata metadata; Status found = session.Run(RunOptions(), {}, {output}, {}, "
            "&outputs, &metadata);"
        ),
        "Run(..., thread pools)": (
            "RunMetadata metadata; Status found = session.Run(RunOptions(), {}, {output}, {}, "
            "&outputs, &metadata, thread::ThreadPoolOptions());"
        ),
        "MakeCallable": (
            "ClientSession::CallableHandle handle; Status found = "
            "session.MakeCallable(CallableOptions(), &handle);"
        ),
        "RunCallable": (
            "ClientSession::CallableHandle handle = 0; RunMetadata metadata; Status found = "
            "session.RunCallable(handle, outputs, &outputs, &metadata);"
        ),
        "ReleaseCallable": "ClientSession::CallableHandle handle = 0; Status found = session.ReleaseCallable(handle);",
    },
    "SessionOptions": {
        "target": 'SessionOptions options; options.target = "";',
        "env": "SessionOptions options; auto* found = options.env; (void)found;",
        "config: threads": (
            "SessionOptions options; options.config.set_intra_op_parallelism_threads(1); "
            "options.config.set_inter_op_parallelism_threads(1);"
        ),
        "config: static graph": (
            "SessionOptions options; "
            "options.config.mutable_experimental()->set_disable_optimize_for_static_graph(true);"
        ),
        "config: placement": (
            "SessionOptions options; options.config.set_log_device_placement(true); "
            "options.config.set_allow_soft_placement(true);"
        ),
        "config: GPUs": "SessionOptions options; options.config.mutable_gpu_options()->set_allow_growth(true);",
        "config: graph options": (
            "SessionOptions options; auto* found = options.config.mutable_graph_options(); "
            "(void)found;"
        ),
    },
    "Tensor": {
        "Tensor()": "Tensor other;",
        "Tensor(type, shape)": "Tensor other(DT_FLOAT, TensorShape({2, 3}));",
        "Tensor(type)": "Tensor other(DT_FLOAT);",
        "Tensor(scalar)": "Tensor a(1.f), b(1.0), c(1), d(true), e(static_cast<int64_t>(1));",
        "Tensor(string)": 'Tensor other("text");',
        "Tensor(allocator, type, shape)": "Tensor other(cpu_allocator(), DT_FLOAT, shape);",
        "BuildTensor": "Tensor other; Status found = Tensor::BuildTensor(DT_FLOAT, shape, &other);",
        "copy and move": "Tensor other(tensor); other = tensor; Tensor third(std::move(other)); third = Tensor();",
        "dtype": "DataType found = tensor.dtype(); (void)found;",
        "shape": "const TensorShape& found = tensor.shape(); (void)found;",
        "dims, dim_size": "auto found = tensor.dims() + tensor.dim_size(0); (void)found;",
        "NumElements": "int64_t found = tensor.NumElements(); (void)found;",
        "IsSameSize": "bool found = tensor.IsSameSize(tensor); (void)found;",
        "SharesBufferWith": "bool found = tensor.SharesBufferWith(tensor); (void)found;",
        "IsInitialized": "bool found = tensor.IsInitialized(); (void)found;",
        "TotalBytes": "size_t found = tensor.TotalBytes(); (void)found;",
        "AllocatedBytes": "size_t found = tensor.AllocatedBytes(); (void)found;",
        "IsAligned": "bool found = tensor.IsAligned(); (void)found;",
        "CopyFrom": "Tensor other; bool found = other.CopyFrom(tensor, TensorShape({3, 2})); (void)found;",
        "Slice": "Tensor other = tensor.Slice(0, 1);",
        "SubSlice": "Tensor other = tensor.SubSlice(0);",
        "FromProto": "TensorProto proto; Tensor other; bool found = other.FromProto(proto); (void)found;",
        "AsProtoField": "TensorProto proto; tensor.AsProtoField(&proto);",
        "AsProtoTensorContent": "TensorProto proto; tensor.AsProtoTensorContent(&proto);",
        "vec": "auto view = Tensor(DT_FLOAT, TensorShape({2})).vec<float>(); (void)view;",
        "matrix": "auto view = tensor.matrix<float>(); view(0, 0) = 1.f;",
        "tensor": "auto view = tensor.tensor<float, 2>(); view(0, 0) = 1.f;",
        "flat": "auto view = tensor.flat<float>(); view(0) = 1.f;",
        "scalar": "Tensor one(1.f); float found = one.scalar<float>()(); (void)found;",
        "shaped": "auto view = tensor.shaped<float, 1>({6}); view(0) = 1.f;",
        "flat_inner_dims": "auto view = tensor.flat_inner_dims<float>(); view(0, 0) = 1.f;",
        "flat_outer_dims": "auto view = tensor.flat_outer_dims<float>(); view(0, 0) = 1.f;",
        "flat_inner_outer_dims": "auto view = tensor.flat_inner_outer_dims<float, 2>(0); (void)view;",
        "unaligned_flat": "auto view = tensor.unaligned_flat<float>(); (void)view;",
        "unaligned_shaped": "auto view = tensor.unaligned_shaped<float, 1>({6}); (void)view;",
        "bit_casted_tensor": "auto view = tensor.bit_casted_tensor<int32, 2>(); (void)view;",
        "bit_casted_shaped": "auto view = tensor.bit_casted_shaped<int32, 1>({6}); (void)view;",
        "reinterpret_last_dimension": "auto view = tensor.reinterpret_last_dimension<float, 2>(); (void)view;",
        "views of a const tensor": (
            "const Tensor& fixed = tensor; float found = fixed.flat<float>()(0) + "
            "fixed.matrix<float>()(0, 0); (void)found;"
        ),
        "view: dimension, size, data": (
            "auto view = tensor.flat<float>(); auto found = view.dimension(0) + view.size(); "
            "(void)found; float* data = view.data(); (void)data;"
        ),
        "view: setZero, setConstant": "auto view = tensor.flat<float>(); view.setZero(); view.setConstant(2.f);",
        "view: expressions of Eigen": (
            "tensor.flat<float>() = tensor.flat<float>() * 2.f + tensor.flat<float>().square();"
        ),
        "view: setRandom": "tensor.flat<float>().setRandom();",
        "view: printed": "std::cout << tensor.flat<float>() << tensor.matrix<float>();",
        "SummarizeValue": "std::string found = tensor.SummarizeValue(3);",
        "DebugString": "std::string found = tensor.DebugString() + tensor.DebugString(5);",
        "DeviceSafeDebugString": "std::string found = tensor.DeviceSafeDebugString();",
        "FillDescription": "TensorDescription* found = nullptr; tensor.FillDescription(found);",
        "tensor_data": "StringPiece found = tensor.tensor_data(); (void)found;",
        "data": "void* found = tensor.data(); (void)found;",
        "BitcastFrom": "Tensor other; Status found = other.BitcastFrom(tensor, DT_INT32, tensor.shape());",
        "operator<<": "std::cout << tensor;",
    },
    "TensorShape": {
        "constructors": (
            "TensorShape a; TensorShape b({1, 2}); TensorShape c = {3}; TensorShape "
            "d(std::vector<int64_t>{1, 2});"
        ),
        "BuildTensorShape": "TensorShape other; Status found = TensorShape::BuildTensorShape({1, 2}, &other);",
        "dims, dim_size, num_elements": (
            "auto found = shape.dims() + shape.dim_size(0) + shape.num_elements(); (void)found;"
        ),
        "dim_sizes": "auto found = shape.dim_sizes().size(); (void)found;",
        "AddDim, InsertDim, set_dim, RemoveDim": (
            "TensorShape other; other.AddDim(2); other.InsertDim(0, 3); other.set_dim(0, 4); "
            "other.RemoveDim(0);"
        ),
        "AddDimWithStatus": "TensorShape other; Status found = other.AddDimWithStatus(2);",
        "AppendShape": "TensorShape other; other.AppendShape(shape);",
        "RemoveLastDims": "TensorShape other({1, 2}); other.RemoveLastDims(1);",
        "Clear": "TensorShape other({1, 2}); other.Clear();",
        "IsSameSize, ==, !=": "bool found = shape.IsSameSize(shape) || shape == shape || shape != shape; (void)found;",
        "IsFullyDefined": "bool found = shape.IsFullyDefined(); (void)found;",
        "iteration": "for (const auto& dim : shape) (void)dim.size;",
        "DebugString": "std::string found = shape.DebugString();",
        "IsValid": "bool found = shape.IsValid(); (void)found;",
        "AsEigenDSizes": "auto found = shape.AsEigenDSizes<2>(); (void)found;",
        "AsProto": "TensorShapeProto proto; shape.AsProto(&proto);",
        "TensorShapeUtils": (
            "bool found = TensorShapeUtils::IsScalar(shape) || TensorShapeUtils::IsVector(shape) "
            "|| TensorShapeUtils::IsMatrix(shape); (void)found;"
        ),
        "PartialTensorShape": (
            "PartialTensorShape other({-1, 2}); bool found = other.IsCompatibleWith(shape) || "
            "other.unknown_rank(); (void)found;"
        ),
        "PartialTensorShape::MergeWith": (
            "PartialTensorShape other; Status found = other.MergeWith(PartialTensorShape({2}), "
            "&other);"
        ),
    },
    "Operation, Output, Input": {
        "Operation()": "Operation other; (void)other;",
        "Operation(node)": "Operation other(output.node()); (void)other;",
        "num_inputs, num_outputs": "int found = operation.num_inputs() + operation.num_outputs(); (void)found;",
        "input_type, output_type": "DataType found = operation.output_type(0); found = operation.input_type(0);",
        "Operation::input, output": "Output found = operation.output(0); found = operation.input(0);",
        "Operation::node, ==": (
            "Node* found = operation.node(); (void)found; bool same = operation == operation; "
            "(void)same;"
        ),
        "Operation::hash": "auto found = operation.hash(0); (void)found;",
        "Output constructors": "Output a; Output b(output.node()); Output c(output.node(), 0); Output d(operation, 0);",
        "Output::op, node, index, type, name": (
            "auto found = output.name() + std::to_string(output.index()); Operation op = "
            "output.op(); Node* node = output.node(); DataType type = output.type(); (void)op; "
            "(void)node; (void)type;"
        ),
        "Output::hash, ==, OutputHash": (
            "auto found = output.hash() + OutputHash()(output); (void)found; bool same = output "
            "== output; (void)same;"
        ),
        "Input(output)": "Input found(output); Input other = output;",
        "Input(number)": "Input a(1.f); Input b = 2; Input c = true;",
        "Input(text)": 'Input found("text");',
        "Input(tensor)": "Input found(tensor);",
        "Input(list)": "Input a({1.f, 2.f}); Input b = {{1, 2}, {3, 4}};",
        "Input(name, index, type)": 'Input found("a", 0, DT_FLOAT);',
        "Input::node, node_name, index, data_type": (
            "Input found(output); auto* node = found.node(); std::string name = "
            "found.node_name(); int at = found.index(); DataType type = found.data_type(); "
            "(void)node; (void)at; (void)type;"
        ),
        "Input::status, tensor": (
            "Input found(tensor); Status s = found.status(); const Tensor& t = found.tensor(); "
            "(void)t;"
        ),
        "Initializer constructors": (
            "Input::Initializer a(1.f); Input::Initializer b(tensor); Input::Initializer c(1.f, "
            "TensorShape({2})); Input::Initializer d({1.f, 2.f}); Input::Initializer e({1.f, "
            "2.f}, TensorShape({2, 1})); Input::Initializer f{{1, 2}, {3, 4}};"
        ),
        "Initializer of text": 'Input::Initializer found("text");',
        "Initializer::status, tensor": "Input::Initializer a(1.f); Status s = a.status; Tensor t = a.tensor;",
        "Initializer::AsTensorProto": "Input::Initializer a(1.f); TensorProto proto = a.AsTensorProto();",
        "InputList": (
            "InputList a(std::vector<Output>{output}); InputList b({Input(output), Input(1.f)}); "
            "for (const Input& each : a) (void)each;"
        ),
        "OutputList": "OutputList found = {output};",
        "Node: name, type_string, id": (
            "std::string found = output.node()->name() + output.node()->type_string(); int id = "
            "output.node()->id(); (void)id;"
        ),
        "Node: num_inputs, output_type": (
            "int found = output.node()->num_inputs() + output.node()->num_outputs(); DataType "
            "type = output.node()->output_type(0); (void)found; (void)type;"
        ),
        "Node: attrs, def": "auto found = output.node()->def(); (void)found;",
        "Graph: num_nodes": "int found = scope.graph()->num_nodes(); (void)found;",
        "Graph: op_nodes": "for (Node* node : scope.graph()->op_nodes()) (void)node;",
    },
    "Status": {
        "Status(), OK, ok": "Status found; found = OkStatus(); bool good = found.ok(); (void)good;",
        "absl::Status": (
            "absl::Status found = absl::OkStatus(); found = "
            'absl::InvalidArgumentError(absl::StrCat("a", 1));'
        ),
        "Status(code, message)": 'Status found(absl::StatusCode::kInvalidArgument, "a");',
        "errors::InvalidArgument": 'Status found = errors::InvalidArgument("a", 1);',
        "errors::IsInvalidArgument": (
            "bool found = errors::IsInvalidArgument(status) || absl::IsNotFound(status); "
            "(void)found;"
        ),
        "code": "bool found = status.code() == absl::StatusCode::kOk; (void)found;",
        "message": "auto found = status.message(); (void)found;",
        "ToString, operator<<": "std::string found = status.ToString(); std::cout << status;",
        "Update": "status.Update(Status());",
        "IgnoreError": "status.IgnoreError();",
        "==, !=": "bool found = status == Status() || status != Status(); (void)found;",
        "TF_CHECK_OK": "TF_CHECK_OK(Status());",
        "TF_RETURN_IF_ERROR": (
            "auto f = []() -> Status { TF_RETURN_IF_ERROR(Status()); return Status(); }; Status "
            "found = f();"
        ),
        "payloads": 'status.SetPayload("a", absl::Cord("b"));',
    },
    "Gradients": {
        "AddSymbolicGradients": (
            "std::vector<Output> grads; Status found = AddSymbolicGradients(scope, {output}, "
            "{output}, &grads);"
        ),
        "AddSymbolicGradients with weights": (
            "std::vector<Output> grads; Status found = AddSymbolicGradients(scope, {output}, "
            "{output}, {output}, &grads);"
        ),
        "NoGradient": "Output found = NoGradient();",
        "ops::GradOpRegistry": "auto* found = ops::GradOpRegistry::Global(); (void)found;",
    },
    "Const": {
        "Const(value)": (
            "Output a = ops::Const(scope, 1.f); a = ops::Const(scope, {1, 2}); a = "
            "ops::Const(scope, {{1.f}, {2.f}}); a = ops::Const(scope, tensor);"
        ),
        "Const<T>": (
            "Output a = ops::Const<float>(scope, 1); a = ops::Const<int64_t>(scope, {1, 2}); a = "
            "ops::Const<Eigen::half>(scope, 1.f); a = ops::Const<bfloat16>(scope, 1.f);"
        ),
        "Const(value, shape)": "Output a = ops::Const(scope, 1.f, {2, 3}); a = ops::Const(scope, {1.f, 2.f}, {2, 1});",
        "Const of text": 'Output a = ops::Const(scope, std::string("text"));',
        "ConstFromProto": "Output a = ops::ConstFromProto(scope, TensorProto());",
    },
    "Other names": {
        "DataTypeString, DataTypeSize": (
            "std::string found = DataTypeString(DT_FLOAT); int size = DataTypeSize(DT_FLOAT); "
            "(void)size;"
        ),
        "DataTypeToEnum": (
            "DataType found = DataTypeToEnum<float>::value; found = DataTypeToEnum<float>::v(); "
            "(void)found;"
        ),
        "EnumToDataType": "EnumToDataType<DT_FLOAT>::Type found = 1.f; (void)found;",
        "int32, int64, uint8": "int32 a = 1; int64_t b = 1; uint8 c = 1; (void)a; (void)b; (void)c;",
        "Eigen::half, bfloat16": (
            "Eigen::half a(1.f); bfloat16 b(1.f); float found = static_cast<float>(a) + "
            "static_cast<float>(b); (void)found;"
        ),
        "StringPiece, string": 'StringPiece a = "a"; string b = "b"; (void)a;',
        "gtl::ArraySlice": "gtl::ArraySlice<int> found(strides); (void)found;",
        "absl::Span": "absl::Span<const int> found(strides); (void)found;",
        "strings::StrCat": 'std::string found = strings::StrCat("a", 1, 2.5f);',
        "LOG, VLOG": 'LOG(INFO) << "a"; LOG(WARNING) << "b"; LOG(ERROR) << "c"; VLOG(1) << "d";',
        "CHECK": 'CHECK(true) << "a"; CHECK_EQ(1, 1) << "b"; CHECK_GE(2, 1); DCHECK(true);',
        "port::InitMain": 'int argc = 0; char** argv = nullptr; port::InitMain("a", &argc, &argv);',
        "adding to namespace tensorflow": "Status found = AddedByTheProgram();",
        "Session by names": (
            "std::unique_ptr<Session> found(NewSession(SessionOptions())); Status s = "
            'found->Run({}, {"a:0"}, {}, &outputs);'
        ),
    },
}

HEAD = """// Written by tools/cc_surface.py: one use of every member, each in a function of its own.
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "tensorflow/cc/client/client_session.h"
#include "tensorflow/cc/framework/gradients.h"
#include "tensorflow/cc/ops/standard_ops.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/platform/init_main.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/public/session_options.h"
#if __has_include("tensorflow/cc/framework/grad_op_registry.h")
#include "tensorflow/cc/framework/grad_op_registry.h"
#endif
#if __has_include("tensorflow/core/platform/threadpool_options.h")
#include "tensorflow/core/platform/threadpool_options.h"
#endif
#if __has_include("tensorflow/core/public/session.h")
#include "tensorflow/core/public/session.h"
#endif

namespace tensorflow {
inline Status AddedByTheProgram() { return Status(); }
}  // namespace tensorflow

using namespace tensorflow;

struct Given {
  Scope scope = Scope::NewRootScope();
  Output output = ops::Const(scope, 1.f);
  Output sizes = ops::Const(scope, {3, 3, 2, 2});
  Operation operation = output.op();
  ops::FILTER filter{scope, ops::Const(scope, 1.f, {1, 4, 4, 2}), sizes,
      ops::Const(scope, 1.f, {1, 4, 4, 4}), {1, 1, 1, 1}, "SAME"};
  Tensor tensor{DT_FLOAT, TensorShape({2, 3})};
  TensorShape shape{2, 3};
  std::vector<int> strides = {1, 1, 1, 1};
  std::vector<Tensor> outputs;
  Status status;
  ClientSession session{scope};
};
""".replace("FILTER", FILTER)

NAMES = ("scope", "output", "sizes", "operation", "filter", "tensor", "shape", "strides", "outputs")
NAMES += ("status", "session")


def program(wanted: dict[str, set[str]] | None = None) -> tuple[str, list[tuple[str, str]]]:
    """Return a program that uses the members, and which member each numbered use is."""
    lines = [HEAD]
    order: list[tuple[str, str]] = []
    for group, uses in USES.items():
        for member, code in uses.items():
            if wanted is not None and member not in wanted.get(group, set()):
                continue
            needed = [name for name in NAMES if re.search(rf"\b{name}\b", code)]
            taken = " ".join(f"auto& {name} = given.{name};" for name in needed)
            quiet = " ".join(f"(void){name};" for name in needed)
            lines.append(
                f"void Use{len(order)}(Given& given) {{ (void)given; {taken} {quiet} {code} }}"
            )
            order.append((group, member))
    calls = " ".join(f"(void)Use{at};" for at in range(len(order)))
    lines.append(f"int main() {{ {calls} return 0; }}\n")
    return "\n".join(lines), order


def compiles(source: str, order: list[tuple[str, str]], flags: list[str]) -> dict[str, set[str]]:
    """Return the members whose use compiles, found from the lines the compiler complains about."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "surface.cc"
        place.write_text(source)
        command = ["g++", "-std=c++17", "-w", "-fsyntax-only", "-fmax-errors=0", *flags, str(place)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    bad_lines = {
        int(each)
        for each in re.findall(r"surface\.cc:(\d+):\d+: (?:error|  required)", done.stderr)
    }
    bad_lines |= {
        int(each)
        for each in re.findall(r"surface\.cc:(\d+):\d+:\s+required from here", done.stderr)
    }
    first = HEAD.count("\n") + 2
    good: dict[str, set[str]] = {}
    for at, (group, member) in enumerate(order):
        if first + at not in bad_lines:
            good.setdefault(group, set()).add(member)
    if done.returncode and not bad_lines:
        raise SystemExit(done.stderr)
    return good


def rows_of(page: str) -> dict[str, set[str]]:
    """Return the members a page says compile."""
    found: dict[str, set[str]] = {}
    group = ""
    for line in page.splitlines():
        if line.startswith("## "):
            group = line[3:].strip("`")
        elif line.startswith("| `") and "| yes |" in line:
            found.setdefault(group, set()).add(line.split("`")[1])
    return found


_PROTO = "no protocol buffers here"
_ONE = "nothing here is placed on devices"
_CALLABLE = "`Run` remembers its way through the graph already"
_BITS = "no views of other types or alignments; `data()` is the memory"
NOTES = {
    "UpdateBuilder": "for authors of ops: `detail::AddNode`",
    "ToGraphDef": _PROTO,
    "ToGraph": "for TensorFlow's own parts",
    "DisabledShapeInferenceScope": "for TensorFlow's own tests",
    "Run(..., thread pools)": "threads are chosen by macro and number",
    "MakeCallable": _CALLABLE,
    "RunCallable": _CALLABLE,
    "ReleaseCallable": _CALLABLE,
    "env": "nothing of the system is replaced",
    "config: placement": _ONE,
    "config: GPUs": "CPUs only",
    "config: graph options": "graphs run as they are",
    "Tensor(allocator, type, shape)": "no allocators of a program's own",
    "FromProto": _PROTO,
    "AsProtoField": _PROTO,
    "AsProtoTensorContent": _PROTO,
    "flat_inner_outer_dims": "`shaped` does it",
    "unaligned_flat": "memory is always aligned: `flat`",
    "unaligned_shaped": "memory is always aligned: `shaped`",
    "bit_casted_tensor": _BITS,
    "bit_casted_shaped": _BITS,
    "reinterpret_last_dimension": _BITS,
    "view: expressions of Eigen": "with `-DCONVGRAD_WITH_EIGEN` and Eigen's headers",
    "view: setRandom": "with `-DCONVGRAD_WITH_EIGEN` and Eigen's headers",
    "DeviceSafeDebugString": "`DebugString`",
    "FillDescription": _PROTO,
    "BitcastFrom": _BITS,
    "AsEigenDSizes": "with Eigen only inside the views",
    "AsProto": _PROTO,
    "Input(name, index, type)": "for loops in graphs, which are not here",
    "Input::node, node_name, index, data_type": "`node_name` is for loops in graphs; the others compile",
    "Initializer::AsTensorProto": _PROTO,
    "Node: attrs, def": _PROTO,
    "payloads": "a Status is a code and a message",
    "ops::GradOpRegistry": "gradients stand in the table of ops",
    "ConstFromProto": _PROTO,
    "Session by names": "`ClientSession`",
}
"""Why a member does not compile, or what to use instead."""


def page(good: dict[str, set[str]]) -> str:
    """Return the page."""
    total = sum(map(len, USES.values()))
    yes = sum(map(len, good.values()))
    lines = [
        "# The C++ API, member by member",
        "",
        (
            "What a program written for TensorFlow's C++ client API may use with convgrad's "
            "headers, TensorFlow's include lines"
        ),
        (
            "unchanged. Every line is one statement that compiles against TensorFlow 2.21; `yes` "
            "says that it compiles unchanged"
        ),
        (
            f"against convgrad too: {yes} of {total}. `python tools/cc_surface.py` writes this "
            "page, and a test compiles every `yes`."
        ),
        "",
    ]
    for group, uses in USES.items():
        lines += [f"## `{group}`" if "," not in group and " " not in group else f"## {group}", ""]
        lines += ["| member | compiles | |", "|---|---|---|"]
        for member in uses:
            said = "yes" if member in good.get(group, set()) else "no"
            lines.append(f"| `{member}` | {said} | {'' if said == 'yes' else NOTES[member]} |")
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    source, order = program()
    if "--program" in sys.argv:
        Path(sys.argv[sys.argv.index("--program") + 1]).write_text(source)
        return
    if shutil.which("g++") is None:
        raise SystemExit("there is no g++ here")
    PAGE.write_text(page(compiles(source, order, [f"-I{INCLUDE}", f"-I{INCLUDE / 'shim'}"])))


if __name__ == "__main__":
    main()
