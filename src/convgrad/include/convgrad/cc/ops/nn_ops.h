// Ops of networks.
// Written by tools/cc_ops.py from the table of ops: change the table, not this file.
#ifndef CONVGRAD_CC_OPS_NN_OPS_H_
#define CONVGRAD_CC_OPS_NN_OPS_H_

#include <cstdint>
#include <string>
#include <utility>

#include "convgrad/cc/ops/op_class.h"

namespace convgrad {
namespace ops {

// A number per channel, added to all of it.
class BiasAdd {
 public:
  // What may be left out; every setter returns a new one.
  struct Attrs {
    TF_MUST_USE_RESULT Attrs DataFormat(StringPiece x) const {
      Attrs ret = *this;
      ret.data_format_ = std::string(x);
      return ret;
    }

    std::string data_format_ = "NHWC";
  };
  BiasAdd(const ::convgrad::Scope& scope, ::convgrad::Input value, ::convgrad::Input bias)
      : BiasAdd(scope, value, bias, Attrs()) {}
  BiasAdd(const ::convgrad::Scope& scope, ::convgrad::Input value, ::convgrad::Input bias,
          const BiasAdd::Attrs& attrs) {
    CONVGRAD_TRY {
      ::convgrad::detail::Attributes given;
      given.Set("data_format", attrs.data_format_);
      const std::vector<::convgrad::Input> from = {value, bias};
      operation = ::convgrad::detail::Make(scope, "BiasAdd", from, std::move(given));
      output = operation.output(0);
    }
    CONVGRAD_CATCH(scope.UpdateStatus(::convgrad::detail::OutOfMemory());)
  }

  operator ::convgrad::Output() const { return output; }
  operator ::convgrad::Input() const { return output; }
  ::convgrad::Node* node() const { return output.node(); }

  static Attrs DataFormat(StringPiece x) {
    return Attrs().DataFormat(x);
  }

  ::convgrad::Operation operation;
  ::convgrad::Output output;
};

// The gradient of a bias: the sum over everything but channels.
class BiasAddGrad {
 public:
  // What may be left out; every setter returns a new one.
  struct Attrs {
    TF_MUST_USE_RESULT Attrs DataFormat(StringPiece x) const {
      Attrs ret = *this;
      ret.data_format_ = std::string(x);
      return ret;
    }

    std::string data_format_ = "NHWC";
  };
  BiasAddGrad(const ::convgrad::Scope& scope, ::convgrad::Input out_backprop)
      : BiasAddGrad(scope, out_backprop, Attrs()) {}
  BiasAddGrad(const ::convgrad::Scope& scope, ::convgrad::Input out_backprop,
              const BiasAddGrad::Attrs& attrs) {
    CONVGRAD_TRY {
      ::convgrad::detail::Attributes given;
      given.Set("data_format", attrs.data_format_);
      const std::vector<::convgrad::Input> from = {out_backprop};
      operation = ::convgrad::detail::Make(scope, "BiasAddGrad", from, std::move(given));
      output = operation.output(0);
    }
    CONVGRAD_CATCH(scope.UpdateStatus(::convgrad::detail::OutOfMemory());)
  }

  operator ::convgrad::Output() const { return output; }
  operator ::convgrad::Input() const { return output; }
  ::convgrad::Node* node() const { return output.node(); }

  static Attrs DataFormat(StringPiece x) {
    return Attrs().DataFormat(x);
  }

  ::convgrad::Operation operation;
  ::convgrad::Output output;
};

// Compute a 2-D convolution.
class Conv2D {
 public:
  // What may be left out; every setter returns a new one.
  struct Attrs {
    TF_MUST_USE_RESULT Attrs UseCudnnOnGpu(bool x) const {
      Attrs ret = *this;
      ret.use_cudnn_on_gpu_ = x;
      return ret;
    }
    TF_MUST_USE_RESULT Attrs ExplicitPaddings(const gtl::ArraySlice<int>& x) const {
      Attrs ret = *this;
      ret.explicit_paddings_ = x;
      return ret;
    }
    TF_MUST_USE_RESULT Attrs DataFormat(StringPiece x) const {
      Attrs ret = *this;
      ret.data_format_ = std::string(x);
      return ret;
    }
    TF_MUST_USE_RESULT Attrs Dilations(const gtl::ArraySlice<int>& x) const {
      Attrs ret = *this;
      ret.dilations_ = x;
      return ret;
    }

    bool use_cudnn_on_gpu_ = true;
    ::convgrad::detail::IntList explicit_paddings_;
    std::string data_format_ = "NHWC";
    ::convgrad::detail::IntList dilations_{1, 1, 1, 1};
  };
  Conv2D(const ::convgrad::Scope& scope, ::convgrad::Input input, ::convgrad::Input filter,
         const gtl::ArraySlice<int>& strides, StringPiece padding)
      : Conv2D(scope, input, filter, strides, padding, Attrs()) {}
  Conv2D(const ::convgrad::Scope& scope, ::convgrad::Input input, ::convgrad::Input filter,
         const gtl::ArraySlice<int>& strides, StringPiece padding, const Conv2D::Attrs& attrs) {
    CONVGRAD_TRY {
      ::convgrad::detail::Attributes given;
      given.Set("strides", ::convgrad::detail::Numbers(strides));
      given.Set("padding", std::string(padding));
      given.Set("use_cudnn_on_gpu", attrs.use_cudnn_on_gpu_);
      given.Set("explicit_paddings", ::convgrad::detail::Numbers(attrs.explicit_paddings_));
      given.Set("data_format", attrs.data_format_);
      given.Set("dilations", ::convgrad::detail::Numbers(attrs.dilations_));
      const std::vector<::convgrad::Input> from = {input, filter};
      operation = ::convgrad::detail::Make(scope, "Conv2D", from, std::move(given));
      output = operation.output(0);
    }
    CONVGRAD_CATCH(scope.UpdateStatus(::convgrad::detail::OutOfMemory());)
  }

  operator ::convgrad::Output() const { return output; }
  operator ::convgrad::Input() const { return output; }
  ::convgrad::Node* node() const { return output.node(); }

  static Attrs UseCudnnOnGpu(bool x) {
    return Attrs().UseCudnnOnGpu(x);
  }
  static Attrs ExplicitPaddings(const gtl::ArraySlice<int>& x) {
    return Attrs().ExplicitPaddings(x);
  }
  static Attrs DataFormat(StringPiece x) {
    return Attrs().DataFormat(x);
  }
  static Attrs Dilations(const gtl::ArraySlice<int>& x) {
    return Attrs().Dilations(x);
  }

  ::convgrad::Operation operation;
  ::convgrad::Output output;
};

// Compute the gradient of a 2-D convolution with respect to its filter.
class Conv2DBackpropFilter {
 public:
  // What may be left out; every setter returns a new one.
  struct Attrs {
    TF_MUST_USE_RESULT Attrs UseCudnnOnGpu(bool x) const {
      Attrs ret = *this;
      ret.use_cudnn_on_gpu_ = x;
      return ret;
    }
    TF_MUST_USE_RESULT Attrs ExplicitPaddings(const gtl::ArraySlice<int>& x) const {
      Attrs ret = *this;
      ret.explicit_paddings_ = x;
      return ret;
    }
    TF_MUST_USE_RESULT Attrs DataFormat(StringPiece x) const {
      Attrs ret = *this;
      ret.data_format_ = std::string(x);
      return ret;
    }
    TF_MUST_USE_RESULT Attrs Dilations(const gtl::ArraySlice<int>& x) const {
      Attrs ret = *this;
      ret.dilations_ = x;
      return ret;
    }

    bool use_cudnn_on_gpu_ = true;
    ::convgrad::detail::IntList explicit_paddings_;
    std::string data_format_ = "NHWC";
    ::convgrad::detail::IntList dilations_{1, 1, 1, 1};
  };
  Conv2DBackpropFilter(const ::convgrad::Scope& scope, ::convgrad::Input input,
                       ::convgrad::Input filter_sizes, ::convgrad::Input out_backprop,
                       const gtl::ArraySlice<int>& strides, StringPiece padding)
      : Conv2DBackpropFilter(scope, input, filter_sizes, out_backprop, strides, padding, Attrs()) {}
  Conv2DBackpropFilter(const ::convgrad::Scope& scope, ::convgrad::Input input,
                       ::convgrad::Input filter_sizes, ::convgrad::Input out_backprop,
                       const gtl::ArraySlice<int>& strides, StringPiece padding,
                       const Conv2DBackpropFilter::Attrs& attrs) {
    CONVGRAD_TRY {
      ::convgrad::detail::Attributes given;
      given.Set("strides", ::convgrad::detail::Numbers(strides));
      given.Set("padding", std::string(padding));
      given.Set("use_cudnn_on_gpu", attrs.use_cudnn_on_gpu_);
      given.Set("explicit_paddings", ::convgrad::detail::Numbers(attrs.explicit_paddings_));
      given.Set("data_format", attrs.data_format_);
      given.Set("dilations", ::convgrad::detail::Numbers(attrs.dilations_));
      const std::vector<::convgrad::Input> from = {input, filter_sizes, out_backprop};
      operation = ::convgrad::detail::Make(scope, "Conv2DBackpropFilter", from, std::move(given));
      output = operation.output(0);
    }
    CONVGRAD_CATCH(scope.UpdateStatus(::convgrad::detail::OutOfMemory());)
  }

  operator ::convgrad::Output() const { return output; }
  operator ::convgrad::Input() const { return output; }
  ::convgrad::Node* node() const { return output.node(); }

  static Attrs UseCudnnOnGpu(bool x) {
    return Attrs().UseCudnnOnGpu(x);
  }
  static Attrs ExplicitPaddings(const gtl::ArraySlice<int>& x) {
    return Attrs().ExplicitPaddings(x);
  }
  static Attrs DataFormat(StringPiece x) {
    return Attrs().DataFormat(x);
  }
  static Attrs Dilations(const gtl::ArraySlice<int>& x) {
    return Attrs().Dilations(x);
  }

  ::convgrad::Operation operation;
  ::convgrad::Output output;
};

// Compute the gradient of a 2-D convolution with respect to its input.
class Conv2DBackpropInput {
 public:
  // What may be left out; every setter returns a new one.
  struct Attrs {
    TF_MUST_USE_RESULT Attrs UseCudnnOnGpu(bool x) const {
      Attrs ret = *this;
      ret.use_cudnn_on_gpu_ = x;
      return ret;
    }
    TF_MUST_USE_RESULT Attrs ExplicitPaddings(const gtl::ArraySlice<int>& x) const {
      Attrs ret = *this;
      ret.explicit_paddings_ = x;
      return ret;
    }
    TF_MUST_USE_RESULT Attrs DataFormat(StringPiece x) const {
      Attrs ret = *this;
      ret.data_format_ = std::string(x);
      return ret;
    }
    TF_MUST_USE_RESULT Attrs Dilations(const gtl::ArraySlice<int>& x) const {
      Attrs ret = *this;
      ret.dilations_ = x;
      return ret;
    }

    bool use_cudnn_on_gpu_ = true;
    ::convgrad::detail::IntList explicit_paddings_;
    std::string data_format_ = "NHWC";
    ::convgrad::detail::IntList dilations_{1, 1, 1, 1};
  };
  Conv2DBackpropInput(const ::convgrad::Scope& scope, ::convgrad::Input input_sizes,
                      ::convgrad::Input filter, ::convgrad::Input out_backprop,
                      const gtl::ArraySlice<int>& strides, StringPiece padding)
      : Conv2DBackpropInput(scope, input_sizes, filter, out_backprop, strides, padding, Attrs()) {}
  Conv2DBackpropInput(const ::convgrad::Scope& scope, ::convgrad::Input input_sizes,
                      ::convgrad::Input filter, ::convgrad::Input out_backprop,
                      const gtl::ArraySlice<int>& strides, StringPiece padding,
                      const Conv2DBackpropInput::Attrs& attrs) {
    CONVGRAD_TRY {
      ::convgrad::detail::Attributes given;
      given.Set("strides", ::convgrad::detail::Numbers(strides));
      given.Set("padding", std::string(padding));
      given.Set("use_cudnn_on_gpu", attrs.use_cudnn_on_gpu_);
      given.Set("explicit_paddings", ::convgrad::detail::Numbers(attrs.explicit_paddings_));
      given.Set("data_format", attrs.data_format_);
      given.Set("dilations", ::convgrad::detail::Numbers(attrs.dilations_));
      const std::vector<::convgrad::Input> from = {input_sizes, filter, out_backprop};
      operation = ::convgrad::detail::Make(scope, "Conv2DBackpropInput", from, std::move(given));
      output = operation.output(0);
    }
    CONVGRAD_CATCH(scope.UpdateStatus(::convgrad::detail::OutOfMemory());)
  }

  operator ::convgrad::Output() const { return output; }
  operator ::convgrad::Input() const { return output; }
  ::convgrad::Node* node() const { return output.node(); }

  static Attrs UseCudnnOnGpu(bool x) {
    return Attrs().UseCudnnOnGpu(x);
  }
  static Attrs ExplicitPaddings(const gtl::ArraySlice<int>& x) {
    return Attrs().ExplicitPaddings(x);
  }
  static Attrs DataFormat(StringPiece x) {
    return Attrs().DataFormat(x);
  }
  static Attrs Dilations(const gtl::ArraySlice<int>& x) {
    return Attrs().Dilations(x);
  }

  ::convgrad::Operation operation;
  ::convgrad::Output output;
};

// Compute a depthwise 2-D convolution.
class DepthwiseConv2dNative {
 public:
  // What may be left out; every setter returns a new one.
  struct Attrs {
    TF_MUST_USE_RESULT Attrs ExplicitPaddings(const gtl::ArraySlice<int>& x) const {
      Attrs ret = *this;
      ret.explicit_paddings_ = x;
      return ret;
    }
    TF_MUST_USE_RESULT Attrs DataFormat(StringPiece x) const {
      Attrs ret = *this;
      ret.data_format_ = std::string(x);
      return ret;
    }
    TF_MUST_USE_RESULT Attrs Dilations(const gtl::ArraySlice<int>& x) const {
      Attrs ret = *this;
      ret.dilations_ = x;
      return ret;
    }

    ::convgrad::detail::IntList explicit_paddings_;
    std::string data_format_ = "NHWC";
    ::convgrad::detail::IntList dilations_{1, 1, 1, 1};
  };
  DepthwiseConv2dNative(const ::convgrad::Scope& scope, ::convgrad::Input input,
                        ::convgrad::Input filter, const gtl::ArraySlice<int>& strides,
                        StringPiece padding)
      : DepthwiseConv2dNative(scope, input, filter, strides, padding, Attrs()) {}
  DepthwiseConv2dNative(const ::convgrad::Scope& scope, ::convgrad::Input input,
                        ::convgrad::Input filter, const gtl::ArraySlice<int>& strides,
                        StringPiece padding, const DepthwiseConv2dNative::Attrs& attrs) {
    CONVGRAD_TRY {
      ::convgrad::detail::Attributes given;
      given.Set("strides", ::convgrad::detail::Numbers(strides));
      given.Set("padding", std::string(padding));
      given.Set("explicit_paddings", ::convgrad::detail::Numbers(attrs.explicit_paddings_));
      given.Set("data_format", attrs.data_format_);
      given.Set("dilations", ::convgrad::detail::Numbers(attrs.dilations_));
      const std::vector<::convgrad::Input> from = {input, filter};
      operation = ::convgrad::detail::Make(scope, "DepthwiseConv2dNative", from, std::move(given));
      output = operation.output(0);
    }
    CONVGRAD_CATCH(scope.UpdateStatus(::convgrad::detail::OutOfMemory());)
  }

  operator ::convgrad::Output() const { return output; }
  operator ::convgrad::Input() const { return output; }
  ::convgrad::Node* node() const { return output.node(); }

  static Attrs ExplicitPaddings(const gtl::ArraySlice<int>& x) {
    return Attrs().ExplicitPaddings(x);
  }
  static Attrs DataFormat(StringPiece x) {
    return Attrs().DataFormat(x);
  }
  static Attrs Dilations(const gtl::ArraySlice<int>& x) {
    return Attrs().Dilations(x);
  }

  ::convgrad::Operation operation;
  ::convgrad::Output output;
};

// Compute the gradient of a depthwise 2-D convolution with respect to its filter.
class DepthwiseConv2dNativeBackpropFilter {
 public:
  // What may be left out; every setter returns a new one.
  struct Attrs {
    TF_MUST_USE_RESULT Attrs ExplicitPaddings(const gtl::ArraySlice<int>& x) const {
      Attrs ret = *this;
      ret.explicit_paddings_ = x;
      return ret;
    }
    TF_MUST_USE_RESULT Attrs DataFormat(StringPiece x) const {
      Attrs ret = *this;
      ret.data_format_ = std::string(x);
      return ret;
    }
    TF_MUST_USE_RESULT Attrs Dilations(const gtl::ArraySlice<int>& x) const {
      Attrs ret = *this;
      ret.dilations_ = x;
      return ret;
    }

    ::convgrad::detail::IntList explicit_paddings_;
    std::string data_format_ = "NHWC";
    ::convgrad::detail::IntList dilations_{1, 1, 1, 1};
  };
  DepthwiseConv2dNativeBackpropFilter(const ::convgrad::Scope& scope, ::convgrad::Input input,
                                      ::convgrad::Input filter_sizes,
                                      ::convgrad::Input out_backprop,
                                      const gtl::ArraySlice<int>& strides, StringPiece padding)
      : DepthwiseConv2dNativeBackpropFilter(scope, input, filter_sizes, out_backprop, strides,
                                            padding, Attrs()) {}
  DepthwiseConv2dNativeBackpropFilter(const ::convgrad::Scope& scope, ::convgrad::Input input,
                                      ::convgrad::Input filter_sizes,
                                      ::convgrad::Input out_backprop,
                                      const gtl::ArraySlice<int>& strides, StringPiece padding,
                                      const DepthwiseConv2dNativeBackpropFilter::Attrs& attrs) {
    CONVGRAD_TRY {
      ::convgrad::detail::Attributes given;
      given.Set("strides", ::convgrad::detail::Numbers(strides));
      given.Set("padding", std::string(padding));
      given.Set("explicit_paddings", ::convgrad::detail::Numbers(attrs.explicit_paddings_));
      given.Set("data_format", attrs.data_format_);
      given.Set("dilations", ::convgrad::detail::Numbers(attrs.dilations_));
      const std::vector<::convgrad::Input> from = {input, filter_sizes, out_backprop};
      operation = ::convgrad::detail::Make(scope, "DepthwiseConv2dNativeBackpropFilter", from,
                                           std::move(given));
      output = operation.output(0);
    }
    CONVGRAD_CATCH(scope.UpdateStatus(::convgrad::detail::OutOfMemory());)
  }

  operator ::convgrad::Output() const { return output; }
  operator ::convgrad::Input() const { return output; }
  ::convgrad::Node* node() const { return output.node(); }

  static Attrs ExplicitPaddings(const gtl::ArraySlice<int>& x) {
    return Attrs().ExplicitPaddings(x);
  }
  static Attrs DataFormat(StringPiece x) {
    return Attrs().DataFormat(x);
  }
  static Attrs Dilations(const gtl::ArraySlice<int>& x) {
    return Attrs().Dilations(x);
  }

  ::convgrad::Operation operation;
  ::convgrad::Output output;
};

// Compute the gradient of a depthwise 2-D convolution with respect to its input.
class DepthwiseConv2dNativeBackpropInput {
 public:
  // What may be left out; every setter returns a new one.
  struct Attrs {
    TF_MUST_USE_RESULT Attrs ExplicitPaddings(const gtl::ArraySlice<int>& x) const {
      Attrs ret = *this;
      ret.explicit_paddings_ = x;
      return ret;
    }
    TF_MUST_USE_RESULT Attrs DataFormat(StringPiece x) const {
      Attrs ret = *this;
      ret.data_format_ = std::string(x);
      return ret;
    }
    TF_MUST_USE_RESULT Attrs Dilations(const gtl::ArraySlice<int>& x) const {
      Attrs ret = *this;
      ret.dilations_ = x;
      return ret;
    }

    ::convgrad::detail::IntList explicit_paddings_;
    std::string data_format_ = "NHWC";
    ::convgrad::detail::IntList dilations_{1, 1, 1, 1};
  };
  DepthwiseConv2dNativeBackpropInput(const ::convgrad::Scope& scope, ::convgrad::Input input_sizes,
                                     ::convgrad::Input filter, ::convgrad::Input out_backprop,
                                     const gtl::ArraySlice<int>& strides, StringPiece padding)
      : DepthwiseConv2dNativeBackpropInput(scope, input_sizes, filter, out_backprop, strides,
                                           padding, Attrs()) {}
  DepthwiseConv2dNativeBackpropInput(const ::convgrad::Scope& scope, ::convgrad::Input input_sizes,
                                     ::convgrad::Input filter, ::convgrad::Input out_backprop,
                                     const gtl::ArraySlice<int>& strides, StringPiece padding,
                                     const DepthwiseConv2dNativeBackpropInput::Attrs& attrs) {
    CONVGRAD_TRY {
      ::convgrad::detail::Attributes given;
      given.Set("strides", ::convgrad::detail::Numbers(strides));
      given.Set("padding", std::string(padding));
      given.Set("explicit_paddings", ::convgrad::detail::Numbers(attrs.explicit_paddings_));
      given.Set("data_format", attrs.data_format_);
      given.Set("dilations", ::convgrad::detail::Numbers(attrs.dilations_));
      const std::vector<::convgrad::Input> from = {input_sizes, filter, out_backprop};
      operation = ::convgrad::detail::Make(scope, "DepthwiseConv2dNativeBackpropInput", from,
                                           std::move(given));
      output = operation.output(0);
    }
    CONVGRAD_CATCH(scope.UpdateStatus(::convgrad::detail::OutOfMemory());)
  }

  operator ::convgrad::Output() const { return output; }
  operator ::convgrad::Input() const { return output; }
  ::convgrad::Node* node() const { return output.node(); }

  static Attrs ExplicitPaddings(const gtl::ArraySlice<int>& x) {
    return Attrs().ExplicitPaddings(x);
  }
  static Attrs DataFormat(StringPiece x) {
    return Attrs().DataFormat(x);
  }
  static Attrs Dilations(const gtl::ArraySlice<int>& x) {
    return Attrs().Dilations(x);
  }

  ::convgrad::Operation operation;
  ::convgrad::Output output;
};

// Half the sum of squares.
class L2Loss {
 public:
  L2Loss(const ::convgrad::Scope& scope, ::convgrad::Input t) {
    CONVGRAD_TRY {
      ::convgrad::detail::Attributes given;
      const std::vector<::convgrad::Input> from = {t};
      operation = ::convgrad::detail::Make(scope, "L2Loss", from, std::move(given));
      output = operation.output(0);
    }
    CONVGRAD_CATCH(scope.UpdateStatus(::convgrad::detail::OutOfMemory());)
  }

  operator ::convgrad::Output() const { return output; }
  operator ::convgrad::Input() const { return output; }
  ::convgrad::Node* node() const { return output.node(); }

  ::convgrad::Operation operation;
  ::convgrad::Output output;
};

// The logarithm of Softmax.
class LogSoftmax {
 public:
  LogSoftmax(const ::convgrad::Scope& scope, ::convgrad::Input logits) {
    CONVGRAD_TRY {
      ::convgrad::detail::Attributes given;
      const std::vector<::convgrad::Input> from = {logits};
      operation = ::convgrad::detail::Make(scope, "LogSoftmax", from, std::move(given));
      logsoftmax = operation.output(0);
    }
    CONVGRAD_CATCH(scope.UpdateStatus(::convgrad::detail::OutOfMemory());)
  }

  operator ::convgrad::Output() const { return logsoftmax; }
  operator ::convgrad::Input() const { return logsoftmax; }
  ::convgrad::Node* node() const { return logsoftmax.node(); }

  ::convgrad::Operation operation;
  ::convgrad::Output logsoftmax;
};

// The largest cell of every window.
class MaxPool {
 public:
  // What may be left out; every setter returns a new one.
  struct Attrs {
    TF_MUST_USE_RESULT Attrs ExplicitPaddings(const gtl::ArraySlice<int>& x) const {
      Attrs ret = *this;
      ret.explicit_paddings_ = x;
      return ret;
    }
    TF_MUST_USE_RESULT Attrs DataFormat(StringPiece x) const {
      Attrs ret = *this;
      ret.data_format_ = std::string(x);
      return ret;
    }

    ::convgrad::detail::IntList explicit_paddings_;
    std::string data_format_ = "NHWC";
  };
  MaxPool(const ::convgrad::Scope& scope, ::convgrad::Input input,
          const gtl::ArraySlice<int>& ksize, const gtl::ArraySlice<int>& strides,
          StringPiece padding)
      : MaxPool(scope, input, ksize, strides, padding, Attrs()) {}
  MaxPool(const ::convgrad::Scope& scope, ::convgrad::Input input,
          const gtl::ArraySlice<int>& ksize, const gtl::ArraySlice<int>& strides,
          StringPiece padding, const MaxPool::Attrs& attrs) {
    CONVGRAD_TRY {
      ::convgrad::detail::Attributes given;
      given.Set("ksize", ::convgrad::detail::Numbers(ksize));
      given.Set("strides", ::convgrad::detail::Numbers(strides));
      given.Set("padding", std::string(padding));
      given.Set("explicit_paddings", ::convgrad::detail::Numbers(attrs.explicit_paddings_));
      given.Set("data_format", attrs.data_format_);
      const std::vector<::convgrad::Input> from = {input};
      operation = ::convgrad::detail::Make(scope, "MaxPool", from, std::move(given));
      output = operation.output(0);
    }
    CONVGRAD_CATCH(scope.UpdateStatus(::convgrad::detail::OutOfMemory());)
  }

  operator ::convgrad::Output() const { return output; }
  operator ::convgrad::Input() const { return output; }
  ::convgrad::Node* node() const { return output.node(); }

  static Attrs ExplicitPaddings(const gtl::ArraySlice<int>& x) {
    return Attrs().ExplicitPaddings(x);
  }
  static Attrs DataFormat(StringPiece x) {
    return Attrs().DataFormat(x);
  }

  ::convgrad::Operation operation;
  ::convgrad::Output output;
};

// The gradient of MaxPoolGrad: what lies where every window's largest cell is.
class MaxPoolGradGrad {
 public:
  // What may be left out; every setter returns a new one.
  struct Attrs {
    TF_MUST_USE_RESULT Attrs ExplicitPaddings(const gtl::ArraySlice<int>& x) const {
      Attrs ret = *this;
      ret.explicit_paddings_ = x;
      return ret;
    }
    TF_MUST_USE_RESULT Attrs DataFormat(StringPiece x) const {
      Attrs ret = *this;
      ret.data_format_ = std::string(x);
      return ret;
    }

    ::convgrad::detail::IntList explicit_paddings_;
    std::string data_format_ = "NHWC";
  };
  MaxPoolGradGrad(const ::convgrad::Scope& scope, ::convgrad::Input orig_input,
                  ::convgrad::Input orig_output, ::convgrad::Input grad,
                  const gtl::ArraySlice<int>& ksize, const gtl::ArraySlice<int>& strides,
                  StringPiece padding)
      : MaxPoolGradGrad(scope, orig_input, orig_output, grad, ksize, strides, padding, Attrs()) {}
  MaxPoolGradGrad(const ::convgrad::Scope& scope, ::convgrad::Input orig_input,
                  ::convgrad::Input orig_output, ::convgrad::Input grad,
                  const gtl::ArraySlice<int>& ksize, const gtl::ArraySlice<int>& strides,
                  StringPiece padding, const MaxPoolGradGrad::Attrs& attrs) {
    CONVGRAD_TRY {
      ::convgrad::detail::Attributes given;
      given.Set("ksize", ::convgrad::detail::Numbers(ksize));
      given.Set("strides", ::convgrad::detail::Numbers(strides));
      given.Set("padding", std::string(padding));
      given.Set("explicit_paddings", ::convgrad::detail::Numbers(attrs.explicit_paddings_));
      given.Set("data_format", attrs.data_format_);
      const std::vector<::convgrad::Input> from = {orig_input, orig_output, grad};
      operation = ::convgrad::detail::Make(scope, "MaxPoolGradGrad", from, std::move(given));
      output = operation.output(0);
    }
    CONVGRAD_CATCH(scope.UpdateStatus(::convgrad::detail::OutOfMemory());)
  }

  operator ::convgrad::Output() const { return output; }
  operator ::convgrad::Input() const { return output; }
  ::convgrad::Node* node() const { return output.node(); }

  static Attrs ExplicitPaddings(const gtl::ArraySlice<int>& x) {
    return Attrs().ExplicitPaddings(x);
  }
  static Attrs DataFormat(StringPiece x) {
    return Attrs().DataFormat(x);
  }

  ::convgrad::Operation operation;
  ::convgrad::Output output;
};

// The larger of x and 0.
class Relu {
 public:
  Relu(const ::convgrad::Scope& scope, ::convgrad::Input features) {
    CONVGRAD_TRY {
      ::convgrad::detail::Attributes given;
      const std::vector<::convgrad::Input> from = {features};
      operation = ::convgrad::detail::Make(scope, "Relu", from, std::move(given));
      activations = operation.output(0);
    }
    CONVGRAD_CATCH(scope.UpdateStatus(::convgrad::detail::OutOfMemory());)
  }

  operator ::convgrad::Output() const { return activations; }
  operator ::convgrad::Input() const { return activations; }
  ::convgrad::Node* node() const { return activations.node(); }

  ::convgrad::Operation operation;
  ::convgrad::Output activations;
};

// Shares that add up to 1 along the last dimension.
class Softmax {
 public:
  Softmax(const ::convgrad::Scope& scope, ::convgrad::Input logits) {
    CONVGRAD_TRY {
      ::convgrad::detail::Attributes given;
      const std::vector<::convgrad::Input> from = {logits};
      operation = ::convgrad::detail::Make(scope, "Softmax", from, std::move(given));
      softmax = operation.output(0);
    }
    CONVGRAD_CATCH(scope.UpdateStatus(::convgrad::detail::OutOfMemory());)
  }

  operator ::convgrad::Output() const { return softmax; }
  operator ::convgrad::Input() const { return softmax; }
  ::convgrad::Node* node() const { return softmax.node(); }

  ::convgrad::Operation operation;
  ::convgrad::Output softmax;
};

// The cross entropy of `labels` and Softmax of `features`, and its gradient: softmax - labels.
class SoftmaxCrossEntropyWithLogits {
 public:
  SoftmaxCrossEntropyWithLogits(const ::convgrad::Scope& scope, ::convgrad::Input features,
                                ::convgrad::Input labels) {
    CONVGRAD_TRY {
      ::convgrad::detail::Attributes given;
      const std::vector<::convgrad::Input> from = {features, labels};
      operation = ::convgrad::detail::Make(scope, "SoftmaxCrossEntropyWithLogits", from,
                                           std::move(given));
      loss = operation.output(0);
      backprop = operation.output(1);
    }
    CONVGRAD_CATCH(scope.UpdateStatus(::convgrad::detail::OutOfMemory());)
  }

  ::convgrad::Operation operation;
  ::convgrad::Output loss;
  ::convgrad::Output backprop;
};

}  // namespace ops
}  // namespace convgrad

#endif  // CONVGRAD_CC_OPS_NN_OPS_H_
