// The table of ops as data.
// Written by tools/cc_ops.py from the table of ops: change the table, not this file.
#ifndef CONVGRAD_CC_TABLE_ROWS_H_
#define CONVGRAD_CC_TABLE_ROWS_H_

#include <algorithm>
#include <iterator>
#include <string_view>

#include "convgrad/cc/scope.h"
#include "convgrad/cc/table/arithmetic.h"
#include "convgrad/cc/table/arrays.h"
#include "convgrad/cc/table/casts.h"
#include "convgrad/cc/table/convolutions.h"
#include "convgrad/cc/table/matmul.h"
#include "convgrad/cc/table/network.h"
#include "convgrad/cc/table/pooling.h"
#include "convgrad/cc/table/reductions.h"
#include "convgrad/cc/table/repeats.h"
#include "convgrad/cc/table/softmax.h"
#include "convgrad/cc/table/sources.h"
#include "convgrad/cc/table/states.h"

namespace convgrad {
namespace detail {
namespace table {

inline constexpr Pin kAddInputs[] = {
    {"x", 0xca427eu, 'T', false, false},
    {"y", 0xca427eu, 'T', false, false},
};
inline constexpr const char* kAddOutputs[] = {"z"};

inline constexpr Pin kAddNInputs[] = {
    {"inputs", 0xca427eu, 'T', true, false},
};
inline constexpr const char* kAddNOutputs[] = {"sum"};

inline constexpr Pin kApplyGradientDescentInputs[] = {
    {"var", 0x84006u, 'T', false, true},
    {"alpha", 0x84006u, 'T', false, false},
    {"delta", 0x84006u, 'T', false, false},
};
inline constexpr const char* kApplyGradientDescentOutputs[] = {"out"};
inline constexpr AttrRow kApplyGradientDescentAttrs[] = {
    {"use_locking", AttrKind::kBool, "", false, 0, "", 0u},
};

inline constexpr Pin kArgMaxInputs[] = {
    {"input", 0xca467eu, 0, false, false},
    {"dimension", 0x208u, 0, false, false},
};
inline constexpr const char* kArgMaxOutputs[] = {"output"};
inline constexpr AttrRow kArgMaxAttrs[] = {
    {"output_type", AttrKind::kType, "", false, DT_INT64, "", 0x208u},
};

inline constexpr Pin kAssignInputs[] = {
    {"ref", 0xca467eu, 'T', false, true},
    {"value", 0xca467eu, 'T', false, false},
};
inline constexpr const char* kAssignOutputs[] = {"output_ref"};
inline constexpr AttrRow kAssignAttrs[] = {
    {"validate_shape", AttrKind::kBool, "", false, 1, "", 0u},
    {"use_locking", AttrKind::kBool, "", false, 1, "", 0u},
};

inline constexpr Pin kBiasAddInputs[] = {
    {"value", 0xca427eu, 'T', false, false},
    {"bias", 0xca427eu, 'T', false, false},
};
inline constexpr const char* kBiasAddOutputs[] = {"output"};
inline constexpr AttrRow kBiasAddAttrs[] = {
    {"data_format", AttrKind::kString, "NHWC,NCHW", false, 0, "NHWC", 0u},
};

inline constexpr Pin kBiasAddGradInputs[] = {
    {"out_backprop", 0xca427eu, 0, false, false},
};
inline constexpr const char* kBiasAddGradOutputs[] = {"output"};
inline constexpr AttrRow kBiasAddGradAttrs[] = {
    {"data_format", AttrKind::kString, "NHWC,NCHW", false, 0, "NHWC", 0u},
};

inline constexpr Pin kBroadcastToInputs[] = {
    {"input", 0xca467eu, 0, false, false},
    {"shape", 0x208u, 0, false, false},
};
inline constexpr const char* kBroadcastToOutputs[] = {"output"};

inline constexpr Pin kCastInputs[] = {
    {"x", 0xca467eu, 0, false, false},
};
inline constexpr const char* kCastOutputs[] = {"y"};
inline constexpr AttrRow kCastAttrs[] = {
    {"DstT", AttrKind::kType, "", true, 0, "", 0xca467eu},
};

inline constexpr const char* kConstOutputs[] = {"output"};
inline constexpr AttrRow kConstAttrs[] = {
    {"value", AttrKind::kTensor, "", true, 0, "", 0u},
};

inline constexpr Pin kConv2DInputs[] = {
    {"input", 0x8400eu, 'T', false, false},
    {"filter", 0x8400eu, 'T', false, false},
};
inline constexpr const char* kConv2DOutputs[] = {"output"};
inline constexpr AttrRow kConv2DAttrs[] = {
    {"strides", AttrKind::kInts, "", true, 0, "", 0u},
    {"padding", AttrKind::kString, "SAME,VALID,EXPLICIT", true, 0, "", 0u},
    {"use_cudnn_on_gpu", AttrKind::kBool, "", false, 1, "", 0u},
    {"explicit_paddings", AttrKind::kInts, "", false, 0, "", 0u},
    {"data_format", AttrKind::kString, "NHWC,NCHW", false, 0, "NHWC", 0u},
    {"dilations", AttrKind::kInts, "", false, 0, "1,1,1,1", 0u},
};

inline constexpr Pin kConv2DBackpropFilterInputs[] = {
    {"input", 0x84006u, 'T', false, false},
    {"filter_sizes", 0x208u, 0, false, false},
    {"out_backprop", 0x84006u, 'T', false, false},
};
inline constexpr const char* kConv2DBackpropFilterOutputs[] = {"output"};
inline constexpr AttrRow kConv2DBackpropFilterAttrs[] = {
    {"strides", AttrKind::kInts, "", true, 0, "", 0u},
    {"padding", AttrKind::kString, "SAME,VALID,EXPLICIT", true, 0, "", 0u},
    {"use_cudnn_on_gpu", AttrKind::kBool, "", false, 1, "", 0u},
    {"explicit_paddings", AttrKind::kInts, "", false, 0, "", 0u},
    {"data_format", AttrKind::kString, "NHWC,NCHW", false, 0, "NHWC", 0u},
    {"dilations", AttrKind::kInts, "", false, 0, "1,1,1,1", 0u},
};

inline constexpr Pin kConv2DBackpropInputInputs[] = {
    {"input_sizes", 0x208u, 0, false, false},
    {"filter", 0x8400eu, 'T', false, false},
    {"out_backprop", 0x8400eu, 'T', false, false},
};
inline constexpr const char* kConv2DBackpropInputOutputs[] = {"output"};
inline constexpr AttrRow kConv2DBackpropInputAttrs[] = {
    {"strides", AttrKind::kInts, "", true, 0, "", 0u},
    {"padding", AttrKind::kString, "SAME,VALID,EXPLICIT", true, 0, "", 0u},
    {"use_cudnn_on_gpu", AttrKind::kBool, "", false, 1, "", 0u},
    {"explicit_paddings", AttrKind::kInts, "", false, 0, "", 0u},
    {"data_format", AttrKind::kString, "NHWC,NCHW", false, 0, "NHWC", 0u},
    {"dilations", AttrKind::kInts, "", false, 0, "1,1,1,1", 0u},
};

inline constexpr Pin kDepthwiseConv2dNativeInputs[] = {
    {"input", 0x84006u, 'T', false, false},
    {"filter", 0x84006u, 'T', false, false},
};
inline constexpr const char* kDepthwiseConv2dNativeOutputs[] = {"output"};
inline constexpr AttrRow kDepthwiseConv2dNativeAttrs[] = {
    {"strides", AttrKind::kInts, "", true, 0, "", 0u},
    {"padding", AttrKind::kString, "SAME,VALID,EXPLICIT", true, 0, "", 0u},
    {"explicit_paddings", AttrKind::kInts, "", false, 0, "", 0u},
    {"data_format", AttrKind::kString, "NHWC,NCHW", false, 0, "NHWC", 0u},
    {"dilations", AttrKind::kInts, "", false, 0, "1,1,1,1", 0u},
};

inline constexpr Pin kDepthwiseConv2dNativeBackpropFilterInputs[] = {
    {"input", 0x84006u, 'T', false, false},
    {"filter_sizes", 0x208u, 0, false, false},
    {"out_backprop", 0x84006u, 'T', false, false},
};
inline constexpr const char* kDepthwiseConv2dNativeBackpropFilterOutputs[] = {"output"};
inline constexpr AttrRow kDepthwiseConv2dNativeBackpropFilterAttrs[] = {
    {"strides", AttrKind::kInts, "", true, 0, "", 0u},
    {"padding", AttrKind::kString, "SAME,VALID,EXPLICIT", true, 0, "", 0u},
    {"explicit_paddings", AttrKind::kInts, "", false, 0, "", 0u},
    {"data_format", AttrKind::kString, "NHWC,NCHW", false, 0, "NHWC", 0u},
    {"dilations", AttrKind::kInts, "", false, 0, "1,1,1,1", 0u},
};

inline constexpr Pin kDepthwiseConv2dNativeBackpropInputInputs[] = {
    {"input_sizes", 0x208u, 0, false, false},
    {"filter", 0x84006u, 'T', false, false},
    {"out_backprop", 0x84006u, 'T', false, false},
};
inline constexpr const char* kDepthwiseConv2dNativeBackpropInputOutputs[] = {"output"};
inline constexpr AttrRow kDepthwiseConv2dNativeBackpropInputAttrs[] = {
    {"strides", AttrKind::kInts, "", true, 0, "", 0u},
    {"padding", AttrKind::kString, "SAME,VALID,EXPLICIT", true, 0, "", 0u},
    {"explicit_paddings", AttrKind::kInts, "", false, 0, "", 0u},
    {"data_format", AttrKind::kString, "NHWC,NCHW", false, 0, "NHWC", 0u},
    {"dilations", AttrKind::kInts, "", false, 0, "1,1,1,1", 0u},
};

inline constexpr Pin kDivInputs[] = {
    {"x", 0xca427eu, 'T', false, false},
    {"y", 0xca427eu, 'T', false, false},
};
inline constexpr const char* kDivOutputs[] = {"z"};

inline constexpr Pin kEqualInputs[] = {
    {"x", 0xca467eu, 'T', false, false},
    {"y", 0xca467eu, 'T', false, false},
};
inline constexpr const char* kEqualOutputs[] = {"z"};

inline constexpr Pin kExpInputs[] = {
    {"x", 0x84006u, 0, false, false},
};
inline constexpr const char* kExpOutputs[] = {"y"};

inline constexpr Pin kInvertPermutationInputs[] = {
    {"x", 0x208u, 0, false, false},
};
inline constexpr const char* kInvertPermutationOutputs[] = {"y"};

inline constexpr Pin kL2LossInputs[] = {
    {"t", 0x84006u, 0, false, false},
};
inline constexpr const char* kL2LossOutputs[] = {"output"};

inline constexpr Pin kLogInputs[] = {
    {"x", 0x84006u, 0, false, false},
};
inline constexpr const char* kLogOutputs[] = {"y"};

inline constexpr Pin kLogSoftmaxInputs[] = {
    {"logits", 0x84006u, 0, false, false},
};
inline constexpr const char* kLogSoftmaxOutputs[] = {"logsoftmax"};

inline constexpr Pin kMatMulInputs[] = {
    {"a", 0xca427eu, 'T', false, false},
    {"b", 0xca427eu, 'T', false, false},
};
inline constexpr const char* kMatMulOutputs[] = {"product"};
inline constexpr AttrRow kMatMulAttrs[] = {
    {"transpose_a", AttrKind::kBool, "", false, 0, "", 0u},
    {"transpose_b", AttrKind::kBool, "", false, 0, "", 0u},
};

inline constexpr Pin kMaxPoolInputs[] = {
    {"input", 0xca427eu, 0, false, false},
};
inline constexpr const char* kMaxPoolOutputs[] = {"output"};
inline constexpr AttrRow kMaxPoolAttrs[] = {
    {"ksize", AttrKind::kInts, "", true, 0, "", 0u},
    {"strides", AttrKind::kInts, "", true, 0, "", 0u},
    {"padding", AttrKind::kString, "SAME,VALID,EXPLICIT", true, 0, "", 0u},
    {"explicit_paddings", AttrKind::kInts, "", false, 0, "", 0u},
    {"data_format", AttrKind::kString, "NHWC,NCHW", false, 0, "NHWC", 0u},
};

inline constexpr Pin kMaxPoolGradInputs[] = {
    {"orig_input", 0xca427eu, 'T', false, false},
    {"orig_output", 0xca427eu, 'T', false, false},
    {"grad", 0xca427eu, 'T', false, false},
};
inline constexpr const char* kMaxPoolGradOutputs[] = {"output"};
inline constexpr AttrRow kMaxPoolGradAttrs[] = {
    {"ksize", AttrKind::kInts, "", true, 0, "", 0u},
    {"strides", AttrKind::kInts, "", true, 0, "", 0u},
    {"padding", AttrKind::kString, "SAME,VALID,EXPLICIT", true, 0, "", 0u},
    {"explicit_paddings", AttrKind::kInts, "", false, 0, "", 0u},
    {"data_format", AttrKind::kString, "NHWC,NCHW", false, 0, "NHWC", 0u},
};

inline constexpr Pin kMaxPoolGradGradInputs[] = {
    {"orig_input", 0xca427eu, 'T', false, false},
    {"orig_output", 0xca427eu, 'T', false, false},
    {"grad", 0xca427eu, 'T', false, false},
};
inline constexpr const char* kMaxPoolGradGradOutputs[] = {"output"};
inline constexpr AttrRow kMaxPoolGradGradAttrs[] = {
    {"ksize", AttrKind::kInts, "", true, 0, "", 0u},
    {"strides", AttrKind::kInts, "", true, 0, "", 0u},
    {"padding", AttrKind::kString, "SAME,VALID,EXPLICIT", true, 0, "", 0u},
    {"explicit_paddings", AttrKind::kInts, "", false, 0, "", 0u},
    {"data_format", AttrKind::kString, "NHWC,NCHW", false, 0, "NHWC", 0u},
};

inline constexpr Pin kMeanInputs[] = {
    {"input", 0xca427eu, 0, false, false},
    {"axis", 0x208u, 0, false, false},
};
inline constexpr const char* kMeanOutputs[] = {"output"};
inline constexpr AttrRow kMeanAttrs[] = {
    {"keep_dims", AttrKind::kBool, "", false, 0, "", 0u},
};

inline constexpr Pin kMultiplyInputs[] = {
    {"x", 0xca427eu, 'T', false, false},
    {"y", 0xca427eu, 'T', false, false},
};
inline constexpr const char* kMultiplyOutputs[] = {"z"};

inline constexpr Pin kNegateInputs[] = {
    {"x", 0xca427eu, 0, false, false},
};
inline constexpr const char* kNegateOutputs[] = {"y"};

inline constexpr Pin kOneHotInputs[] = {
    {"indices", 0x218u, 0, false, false},
    {"depth", 0x208u, 0, false, false},
    {"on_value", 0xca467eu, 'T', false, false},
    {"off_value", 0xca467eu, 'T', false, false},
};
inline constexpr const char* kOneHotOutputs[] = {"output"};
inline constexpr AttrRow kOneHotAttrs[] = {
    {"axis", AttrKind::kInt, "", false, -1, "", 0u},
};

inline constexpr const char* kPlaceholderOutputs[] = {"output"};
inline constexpr AttrRow kPlaceholderAttrs[] = {
    {"dtype", AttrKind::kType, "", true, 0, "", 0xca467eu},
    {"shape", AttrKind::kShape, "", false, 0, "", 0u},
};

inline constexpr Pin kRandomNormalInputs[] = {
    {"shape", 0x208u, 0, false, false},
};
inline constexpr const char* kRandomNormalOutputs[] = {"output"};
inline constexpr AttrRow kRandomNormalAttrs[] = {
    {"dtype", AttrKind::kType, "", true, 0, "", 0x84006u},
    {"seed", AttrKind::kInt, "", false, 0, "", 0u},
    {"seed2", AttrKind::kInt, "", false, 0, "", 0u},
};

inline constexpr Pin kRandomUniformInputs[] = {
    {"shape", 0x208u, 0, false, false},
};
inline constexpr const char* kRandomUniformOutputs[] = {"output"};
inline constexpr AttrRow kRandomUniformAttrs[] = {
    {"dtype", AttrKind::kType, "", true, 0, "", 0x84006u},
    {"seed", AttrKind::kInt, "", false, 0, "", 0u},
    {"seed2", AttrKind::kInt, "", false, 0, "", 0u},
};

inline constexpr Pin kRangeInputs[] = {
    {"start", 0xca427eu, 'T', false, false},
    {"limit", 0xca427eu, 'T', false, false},
    {"delta", 0xca427eu, 'T', false, false},
};
inline constexpr const char* kRangeOutputs[] = {"output"};

inline constexpr Pin kReluInputs[] = {
    {"features", 0xca427eu, 0, false, false},
};
inline constexpr const char* kReluOutputs[] = {"activations"};

inline constexpr Pin kReluGradInputs[] = {
    {"gradients", 0xca427eu, 'T', false, false},
    {"features", 0xca427eu, 'T', false, false},
};
inline constexpr const char* kReluGradOutputs[] = {"backprops"};

inline constexpr Pin kReshapeInputs[] = {
    {"tensor", 0xca467eu, 0, false, false},
    {"shape", 0x208u, 0, false, false},
};
inline constexpr const char* kReshapeOutputs[] = {"output"};

inline constexpr Pin kShapeInputs[] = {
    {"input", 0xca467eu, 0, false, false},
};
inline constexpr const char* kShapeOutputs[] = {"output"};
inline constexpr AttrRow kShapeAttrs[] = {
    {"out_type", AttrKind::kType, "", false, DT_INT32, "", 0x208u},
};

inline constexpr Pin kSigmoidInputs[] = {
    {"x", 0x84006u, 0, false, false},
};
inline constexpr const char* kSigmoidOutputs[] = {"y"};

inline constexpr Pin kSoftmaxInputs[] = {
    {"logits", 0x84006u, 0, false, false},
};
inline constexpr const char* kSoftmaxOutputs[] = {"softmax"};

inline constexpr Pin kSoftmaxCrossEntropyWithLogitsInputs[] = {
    {"features", 0x84006u, 'T', false, false},
    {"labels", 0x84006u, 'T', false, false},
};
inline constexpr const char* kSoftmaxCrossEntropyWithLogitsOutputs[] = {"loss", "backprop"};

inline constexpr Pin kSpreadReducedInputs[] = {
    {"input", 0xca427eu, 0, false, false},
    {"axis", 0x208u, 0, false, false},
    {"shape", 0x208u, 0, false, false},
};
inline constexpr const char* kSpreadReducedOutputs[] = {"output"};
inline constexpr AttrRow kSpreadReducedAttrs[] = {
    {"mean", AttrKind::kBool, "", false, 0, "", 0u},
};

inline constexpr Pin kSqrtInputs[] = {
    {"x", 0x84006u, 0, false, false},
};
inline constexpr const char* kSqrtOutputs[] = {"y"};

inline constexpr Pin kSquareInputs[] = {
    {"x", 0xca427eu, 0, false, false},
};
inline constexpr const char* kSquareOutputs[] = {"y"};

inline constexpr Pin kSubtractInputs[] = {
    {"x", 0xca427eu, 'T', false, false},
    {"y", 0xca427eu, 'T', false, false},
};
inline constexpr const char* kSubtractOutputs[] = {"z"};

inline constexpr Pin kSumInputs[] = {
    {"input", 0xca427eu, 0, false, false},
    {"axis", 0x208u, 0, false, false},
};
inline constexpr const char* kSumOutputs[] = {"output"};
inline constexpr AttrRow kSumAttrs[] = {
    {"keep_dims", AttrKind::kBool, "", false, 0, "", 0u},
};

inline constexpr Pin kSumToShapeInputs[] = {
    {"input", 0xca427eu, 0, false, false},
    {"shape", 0x208u, 0, false, false},
};
inline constexpr const char* kSumToShapeOutputs[] = {"output"};

inline constexpr Pin kTanhInputs[] = {
    {"x", 0x84006u, 0, false, false},
};
inline constexpr const char* kTanhOutputs[] = {"y"};

inline constexpr Pin kTransposeInputs[] = {
    {"x", 0xca467eu, 0, false, false},
    {"perm", 0x208u, 0, false, false},
};
inline constexpr const char* kTransposeOutputs[] = {"y"};

inline constexpr const char* kVariableOutputs[] = {"ref"};
inline constexpr AttrRow kVariableAttrs[] = {
    {"shape", AttrKind::kShape, "", true, 0, "", 0u},
    {"dtype", AttrKind::kType, "", true, 0, "", 0xca467eu},
    {"container", AttrKind::kString, "", false, 0, "", 0u},
    {"shared_name", AttrKind::kString, "", false, 0, "", 0u},
};

// Sorted by name.
inline constexpr OpRow kRows[] = {
    {"Add", kAddInputs, 2, kAddOutputs, 1, nullptr, 0, InferAdd, ComputeAdd, GradAdd, true, false,
     false, false, false, "Add", "T:0", "T"},
    {"AddN", kAddNInputs, 1, kAddNOutputs, 1, nullptr, 0, InferAddN, ComputeAddN, GradAddN, false,
     false, false, false, false, "AddN", "T:0", "T"},
    {"ApplyGradientDescent", kApplyGradientDescentInputs, 3, kApplyGradientDescentOutputs, 1,
     kApplyGradientDescentAttrs, 1, InferApplyGradientDescent, ComputeApplyGradientDescent, nullptr,
     false, false, true, false, false, "ApplyGradientDescent", "T:0", "Ref(T)"},
    {"ArgMax", kArgMaxInputs, 2, kArgMaxOutputs, 1, kArgMaxAttrs, 1, InferArgMax, ComputeArgMax,
     NoGradients, false, false, false, false, false, "ArgMax", "T:0,Tidx:1", "output_type"},
    {"Assign", kAssignInputs, 2, kAssignOutputs, 1, kAssignAttrs, 2, InferAssign, ComputeAssign,
     nullptr, false, false, true, false, false, "Assign", "T:0", "Ref(T)"},
    {"BiasAdd", kBiasAddInputs, 2, kBiasAddOutputs, 1, kBiasAddAttrs, 1, InferBiasAdd,
     ComputeBiasAdd, GradBiasAdd, true, false, false, false, false, "BiasAdd", "T:0", "T"},
    {"BiasAddGrad", kBiasAddGradInputs, 1, kBiasAddGradOutputs, 1, kBiasAddGradAttrs, 1,
     InferBiasAddGrad, ComputeBiasAddGrad, GradBiasAddGrad, false, false, false, false, false,
     "BiasAddGrad", "T:0", "T"},
    {"BroadcastTo", kBroadcastToInputs, 2, kBroadcastToOutputs, 1, nullptr, 0, InferBroadcastTo,
     ComputeBroadcastTo, GradBroadcastTo, false, false, false, false, false, "BroadcastTo",
     "T:0,Tidx:1", "T"},
    {"Cast", kCastInputs, 1, kCastOutputs, 1, kCastAttrs, 1, InferCast, ComputeCast, GradCast,
     false, true, false, false, false, "Cast", "SrcT:0", "DstT"},
    {"Const", nullptr, 0, kConstOutputs, 1, kConstAttrs, 1, InferConst, ComputeConst, NoGradients,
     false, false, false, false, false, "Const", "", "dtype"},
    {"Conv2D", kConv2DInputs, 2, kConv2DOutputs, 1, kConv2DAttrs, 6, InferConv2D, ComputeConv2D,
     GradConv2D, false, false, false, false, false, "Conv2D", "T:0", "T"},
    {"Conv2DBackpropFilter", kConv2DBackpropFilterInputs, 3, kConv2DBackpropFilterOutputs, 1,
     kConv2DBackpropFilterAttrs, 6, InferConv2DBackpropFilter, ComputeConv2DBackpropFilter,
     GradConv2DBackpropFilter, false, false, false, false, false, "Conv2DBackpropFilter", "T:0",
     "T"},
    {"Conv2DBackpropInput", kConv2DBackpropInputInputs, 3, kConv2DBackpropInputOutputs, 1,
     kConv2DBackpropInputAttrs, 6, InferConv2DBackpropInput, ComputeConv2DBackpropInput,
     GradConv2DBackpropInput, false, false, false, false, false, "Conv2DBackpropInput", "T:1", "T"},
    {"DepthwiseConv2dNative", kDepthwiseConv2dNativeInputs, 2, kDepthwiseConv2dNativeOutputs, 1,
     kDepthwiseConv2dNativeAttrs, 5, InferDepthwiseConv2dNative, ComputeDepthwiseConv2dNative,
     GradDepthwiseConv2dNative, false, false, false, false, false, "DepthwiseConv2dNative", "T:0",
     "T"},
    {"DepthwiseConv2dNativeBackpropFilter", kDepthwiseConv2dNativeBackpropFilterInputs, 3,
     kDepthwiseConv2dNativeBackpropFilterOutputs, 1, kDepthwiseConv2dNativeBackpropFilterAttrs, 5,
     InferDepthwiseConv2dNativeBackpropFilter, ComputeDepthwiseConv2dNativeBackpropFilter,
     GradDepthwiseConv2dNativeBackpropFilter, false, false, false, false, false,
     "DepthwiseConv2dNativeBackpropFilter", "T:0", "T"},
    {"DepthwiseConv2dNativeBackpropInput", kDepthwiseConv2dNativeBackpropInputInputs, 3,
     kDepthwiseConv2dNativeBackpropInputOutputs, 1, kDepthwiseConv2dNativeBackpropInputAttrs, 5,
     InferDepthwiseConv2dNativeBackpropInput, ComputeDepthwiseConv2dNativeBackpropInput,
     GradDepthwiseConv2dNativeBackpropInput, false, false, false, false, false,
     "DepthwiseConv2dNativeBackpropInput", "T:1", "T"},
    {"Div", kDivInputs, 2, kDivOutputs, 1, nullptr, 0, InferDiv, ComputeDiv, GradDiv, true, false,
     false, false, false, "Div", "T:0", "T"},
    {"Equal", kEqualInputs, 2, kEqualOutputs, 1, nullptr, 0, InferEqual, ComputeEqual, NoGradients,
     false, false, false, false, false, "Equal", "T:0", "bool"},
    {"Exp", kExpInputs, 1, kExpOutputs, 1, nullptr, 0, InferExp, ComputeExp, GradExp, true, false,
     false, false, false, "Exp", "T:0", "T"},
    {"InvertPermutation", kInvertPermutationInputs, 1, kInvertPermutationOutputs, 1, nullptr, 0,
     InferInvertPermutation, ComputeInvertPermutation, NoGradients, false, false, false, false,
     false, "InvertPermutation", "T:0", "T"},
    {"L2Loss", kL2LossInputs, 1, kL2LossOutputs, 1, nullptr, 0, InferL2Loss, ComputeL2Loss,
     GradL2Loss, false, false, false, false, false, "L2Loss", "T:0", "T"},
    {"Log", kLogInputs, 1, kLogOutputs, 1, nullptr, 0, InferLog, ComputeLog, GradLog, true, false,
     false, false, false, "Log", "T:0", "T"},
    {"LogSoftmax", kLogSoftmaxInputs, 1, kLogSoftmaxOutputs, 1, nullptr, 0, InferLogSoftmax,
     ComputeLogSoftmax, GradLogSoftmax, false, false, false, false, false, "LogSoftmax", "T:0",
     "T"},
    {"MatMul", kMatMulInputs, 2, kMatMulOutputs, 1, kMatMulAttrs, 2, InferMatMul, ComputeMatMul,
     GradMatMul, false, false, false, false, false, "MatMul", "T:0", "T"},
    {"MaxPool", kMaxPoolInputs, 1, kMaxPoolOutputs, 1, kMaxPoolAttrs, 5, InferMaxPool,
     ComputeMaxPool, GradMaxPool, false, false, false, false, false, "MaxPool", "T:0", "T"},
    {"MaxPoolGrad", kMaxPoolGradInputs, 3, kMaxPoolGradOutputs, 1, kMaxPoolGradAttrs, 5,
     InferMaxPoolGrad, ComputeMaxPoolGrad, GradMaxPoolGrad, false, false, false, true, false,
     "MaxPoolGrad", "T:0", "T"},
    {"MaxPoolGradGrad", kMaxPoolGradGradInputs, 3, kMaxPoolGradGradOutputs, 1,
     kMaxPoolGradGradAttrs, 5, InferMaxPoolGradGrad, ComputeMaxPoolGradGrad, GradMaxPoolGradGrad,
     false, false, false, false, false, "MaxPoolGradGrad", "T:0", "T"},
    {"Mean", kMeanInputs, 2, kMeanOutputs, 1, kMeanAttrs, 1, InferMean, ComputeMean, GradMean,
     false, false, false, false, false, "Mean", "T:0,Tidx:1", "T"},
    {"Multiply", kMultiplyInputs, 2, kMultiplyOutputs, 1, nullptr, 0, InferMultiply,
     ComputeMultiply, GradMultiply, true, false, false, false, false, "Mul", "T:0", "T"},
    {"Negate", kNegateInputs, 1, kNegateOutputs, 1, nullptr, 0, InferNegate, ComputeNegate,
     GradNegate, true, false, false, false, false, "Neg", "T:0", "T"},
    {"OneHot", kOneHotInputs, 4, kOneHotOutputs, 1, kOneHotAttrs, 1, InferOneHot, ComputeOneHot,
     NoGradients, false, false, false, false, false, "OneHot", "T:2,TI:0", "T"},
    {"Placeholder", nullptr, 0, kPlaceholderOutputs, 1, kPlaceholderAttrs, 2, InferPlaceholder,
     nullptr, NoGradients, false, false, false, false, false, "Placeholder", "", "dtype"},
    {"RandomNormal", kRandomNormalInputs, 1, kRandomNormalOutputs, 1, kRandomNormalAttrs, 3,
     InferRandomNormal, ComputeRandomNormal, NoGradients, false, false, false, false, false,
     "RandomStandardNormal", "T:0", "dtype"},
    {"RandomUniform", kRandomUniformInputs, 1, kRandomUniformOutputs, 1, kRandomUniformAttrs, 3,
     InferRandomUniform, ComputeRandomUniform, NoGradients, false, false, false, false, false,
     "RandomUniform", "T:0", "dtype"},
    {"Range", kRangeInputs, 3, kRangeOutputs, 1, nullptr, 0, InferRange, ComputeRange, NoGradients,
     false, false, false, false, false, "Range", "Tidx:0", "Tidx"},
    {"Relu", kReluInputs, 1, kReluOutputs, 1, nullptr, 0, InferRelu, ComputeRelu, GradRelu, true,
     false, false, false, false, "Relu", "T:0", "T"},
    {"ReluGrad", kReluGradInputs, 2, kReluGradOutputs, 1, nullptr, 0, InferReluGrad,
     ComputeReluGrad, GradReluGrad, true, false, false, true, false, "ReluGrad", "T:0", "T"},
    {"Reshape", kReshapeInputs, 2, kReshapeOutputs, 1, nullptr, 0, InferReshape, ComputeReshape,
     GradReshape, false, true, false, false, false, "Reshape", "T:0,Tshape:1", "T"},
    {"Shape", kShapeInputs, 1, kShapeOutputs, 1, kShapeAttrs, 1, InferShape, ComputeShape,
     NoGradients, false, false, false, false, true, "Shape", "T:0", "out_type"},
    {"Sigmoid", kSigmoidInputs, 1, kSigmoidOutputs, 1, nullptr, 0, InferSigmoid, ComputeSigmoid,
     GradSigmoid, true, false, false, false, false, "Sigmoid", "T:0", "T"},
    {"Softmax", kSoftmaxInputs, 1, kSoftmaxOutputs, 1, nullptr, 0, InferSoftmax, ComputeSoftmax,
     GradSoftmax, false, false, false, false, false, "Softmax", "T:0", "T"},
    {"SoftmaxCrossEntropyWithLogits", kSoftmaxCrossEntropyWithLogitsInputs, 2,
     kSoftmaxCrossEntropyWithLogitsOutputs, 2, nullptr, 0, InferSoftmaxCrossEntropyWithLogits,
     ComputeSoftmaxCrossEntropyWithLogits, GradSoftmaxCrossEntropyWithLogits, false, false, false,
     false, false, "SoftmaxCrossEntropyWithLogits", "T:0", "T"},
    {"SpreadReduced", kSpreadReducedInputs, 3, kSpreadReducedOutputs, 1, kSpreadReducedAttrs, 1,
     InferSpreadReduced, ComputeSpreadReduced, GradSpreadReduced, false, false, false, true, false,
     "SpreadReduced", "T:0,Tidx:1,Tshape:2", "T"},
    {"Sqrt", kSqrtInputs, 1, kSqrtOutputs, 1, nullptr, 0, InferSqrt, ComputeSqrt, GradSqrt, true,
     false, false, false, false, "Sqrt", "T:0", "T"},
    {"Square", kSquareInputs, 1, kSquareOutputs, 1, nullptr, 0, InferSquare, ComputeSquare,
     GradSquare, true, false, false, false, false, "Square", "T:0", "T"},
    {"Subtract", kSubtractInputs, 2, kSubtractOutputs, 1, nullptr, 0, InferSubtract,
     ComputeSubtract, GradSubtract, true, false, false, false, false, "Sub", "T:0", "T"},
    {"Sum", kSumInputs, 2, kSumOutputs, 1, kSumAttrs, 1, InferSum, ComputeSum, GradSum, false,
     false, false, false, false, "Sum", "T:0,Tidx:1", "T"},
    {"SumToShape", kSumToShapeInputs, 2, kSumToShapeOutputs, 1, nullptr, 0, InferSumToShape,
     ComputeSumToShape, GradSumToShape, false, true, false, true, false, "SumToShape",
     "T:0,Tshape:1", "T"},
    {"Tanh", kTanhInputs, 1, kTanhOutputs, 1, nullptr, 0, InferTanh, ComputeTanh, GradTanh, true,
     false, false, false, false, "Tanh", "T:0", "T"},
    {"Transpose", kTransposeInputs, 2, kTransposeOutputs, 1, nullptr, 0, InferTranspose,
     ComputeTranspose, GradTranspose, false, false, false, false, false, "Transpose", "T:0,Tperm:1",
     "T"},
    {"Variable", nullptr, 0, kVariableOutputs, 1, kVariableAttrs, 4, InferVariable, nullptr,
     NoGradients, false, false, false, false, false, "VariableV2", "", "Ref(dtype)"},
};

}  // namespace table

CONVGRAD_TABLE_INLINE const OpRow* FindRow(std::string_view name) {
  const auto* const found =
      std::lower_bound(std::begin(table::kRows), std::end(table::kRows), name,
                       [](const OpRow& row, std::string_view wanted) {
                         return std::string_view(row.name) < wanted;
                       });
  const bool there = found != std::end(table::kRows) && name == found->name;
  return there ? found : nullptr;
}

}  // namespace detail
}  // namespace convgrad

#endif  // CONVGRAD_CC_TABLE_ROWS_H_
