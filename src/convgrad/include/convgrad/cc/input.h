// Input: a tensor of the graph, or numbers that become a Const; lists of them.
#ifndef CONVGRAD_CC_INPUT_H_
#define CONVGRAD_CC_INPUT_H_

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "convgrad/cc/graph.h"

namespace convgrad {
namespace detail {

// What C++ constants may be: numbers; strings only so that the refusal is a Status and not a page
// of the compiler's.
template <class T>
constexpr bool kIsConstant = std::is_arithmetic_v<T> || std::is_same_v<T, half> ||
                             std::is_same_v<T, bfloat16> || std::is_convertible_v<T, std::string>;

}  // namespace detail

class Input {
 public:
  struct Initializer {
    template <class T, bool = std::is_convertible_v<T, std::string>>
    struct RealType {
      using type = tstring;
    };
    template <class T>
    struct RealType<T, false> {
      using type = T;
    };

    template <class T, class = std::enable_if_t<detail::kIsConstant<T>>>
    Initializer(const T& value) : Initializer(value, TensorShape()) {}
    Initializer(const Tensor& t) : tensor(t) {}
    template <class T, class = std::enable_if_t<detail::kIsConstant<T>>>
    Initializer(const T& value, const TensorShape& shape) {
      if constexpr (std::is_convertible_v<T, std::string>) {
        RefuseStrings();
      } else if (Make(DataTypeToEnum<T>::value, shape)) {
        T* to = static_cast<T*>(tensor.data());
        std::fill(to, to + tensor.NumElements(), value);
      }
    }
    template <class T, class = std::enable_if_t<detail::kIsConstant<T>>>
    Initializer(const std::initializer_list<T>& values)
        : Initializer(values, TensorShape({static_cast<std::int64_t>(values.size())})) {}
    template <class T, class = std::enable_if_t<detail::kIsConstant<T>>>
    Initializer(const std::initializer_list<T>& values, const TensorShape& shape) {
      if constexpr (std::is_convertible_v<T, std::string>) {
        RefuseStrings();
      } else {
        if (shape.IsValid() && shape.num_elements() != static_cast<std::int64_t>(values.size())) {
          status = errors::InvalidArgument("Cannot construct a tensor with ", shape.num_elements(),
                                           " from an initializer list with ", values.size(),
                                           " elements");
        } else if (Make(DataTypeToEnum<T>::value, shape)) {
          std::copy(values.begin(), values.end(), static_cast<T*>(tensor.data()));
        }
      }
    }
    // Lists of lists, of one shape and type.
    Initializer(const std::initializer_list<Initializer>& parts) { Stack(parts); }

    Status status;
    Tensor tensor;

   private:
    void RefuseStrings() {
      status = errors::Unimplemented("convgrad has no tensors of strings");
      tensor = Tensor(DT_STRING);
    }
    bool Make(DataType type, const TensorShape& shape) {
      status = Tensor::BuildTensor(type, shape, &tensor);
      return status.ok() && tensor.NumElements() > 0;
    }
    void Stack(const std::initializer_list<Initializer>& parts) {
      if (parts.size() < 1) {  // as TensorFlow has it
        tensor = Tensor(DT_FLOAT, TensorShape({0}));
        return;
      }
      const Tensor& first = parts.begin()->tensor;
      for (const Initializer& part : parts) {
        status = part.status;
        if (!status.ok()) return;
        if (part.tensor.dtype() != first.dtype()) {
          status = errors::InvalidArgument(
              "Initializer list components should all have the same type");
          return;
        }
        if (!part.tensor.IsSameSize(first)) {
          status = errors::InvalidArgument(
              "Initializer list components should all have the same shape");
          return;
        }
      }
      CONVGRAD_TRY {
        TensorShape shape({static_cast<std::int64_t>(parts.size())});
        shape.AppendShape(first.shape());
        if (!Make(first.dtype(), shape)) return;
      }
      CONVGRAD_CATCH(status = detail::OutOfMemory(); return;)
      char* to = static_cast<char*>(tensor.data());
      for (const Initializer& part : parts) {
        const std::string_view bytes = part.tensor.tensor_data();
        if (bytes.size() != first.TotalBytes()) {
          status = errors::InvalidArgument("an initializer's tensor has no memory");
          return;
        }
        std::memcpy(to, bytes.data(), bytes.size());
        to += bytes.size();
      }
    }
  };

  Input(const Output& output) : output_(output) {}
  template <class T, class = std::enable_if_t<detail::kIsConstant<T>>>
  Input(const T& value) : Input(Initializer(value)) {}
  Input(const Initializer& init) : status_(init.status), tensor_(init.tensor), constant_(true) {}
  Input(const Tensor& tensor) : tensor_(tensor), constant_(true) {}
  Input(const std::initializer_list<Initializer>& parts) : Input(Initializer(parts)) {}

  Node* node() const { return output_.node(); }
  std::int32_t index() const { return output_.index(); }
  DataType data_type() const { return constant_ ? tensor_.dtype() : output_.type(); }
  Status status() const { return status_; }
  const Tensor& tensor() const { return tensor_; }

  // Not TensorFlow's.
  const Output& output() const { return output_; }
  bool is_constant() const { return constant_; }

 private:
  Status status_;
  Output output_;
  Tensor tensor_;
  bool constant_ = false;
};

using OutputList = std::vector<Output>;

// Several inputs of one op. It is made and copied before the op's constructor is entered, so it keeps
// a lack of memory for the op to report.
class InputList {
 public:
  InputList(const OutputList& outputs) { Take(outputs.begin(), outputs.end()); }
  InputList(const std::initializer_list<Input>& inputs) { Take(inputs.begin(), inputs.end()); }
  InputList(const gtl::ArraySlice<Input>& inputs) { Take(inputs.begin(), inputs.end()); }
  InputList(const std::initializer_list<Output>& outputs) { Take(outputs.begin(), outputs.end()); }
  InputList(const InputList& other) : status_(other.status_) { Take(other.begin(), other.end()); }
  InputList(InputList&&) = default;
  InputList& operator=(InputList other) {
    status_ = std::move(other.status_);
    inputs_ = std::move(other.inputs_);
    return *this;
  }

  // Not TensorFlow's: whether all inputs are here.
  const Status& status() const { return status_; }

  std::vector<Input>::iterator begin() { return inputs_.begin(); }
  std::vector<Input>::iterator end() { return inputs_.end(); }
  std::vector<Input>::const_iterator begin() const { return inputs_.begin(); }
  std::vector<Input>::const_iterator end() const { return inputs_.end(); }
  std::size_t size() const { return inputs_.size(); }

 private:
  template <class Iterator>
  void Take(Iterator begin, Iterator end) {
    CONVGRAD_TRY { inputs_.assign(begin, end); }
    CONVGRAD_CATCH(inputs_.clear(); status_ = detail::OutOfMemory();)
  }

  Status status_;
  std::vector<Input> inputs_;
};

}  // namespace convgrad

#endif  // CONVGRAD_CC_INPUT_H_
