// Types of elements: TensorFlow's names and numbers, and which C++ type is which.
#ifndef CONVGRAD_CC_TYPES_H_
#define CONVGRAD_CC_TYPES_H_

#include <cstdint>
#include <string>
#include <type_traits>

#include "convgrad/cc/half.h"
#include "convgrad/cc/status.h"

namespace convgrad {

using tstring = std::string;

// DT_STRING and what else no op here takes is named so that programs compile; tensors of them have
// no memory.
enum DataType : int {
  DT_INVALID = 0,
  DT_FLOAT = 1,
  DT_DOUBLE = 2,
  DT_INT32 = 3,
  DT_UINT8 = 4,
  DT_INT16 = 5,
  DT_INT8 = 6,
  DT_STRING = 7,
  DT_COMPLEX64 = 8,
  DT_INT64 = 9,
  DT_BOOL = 10,
  DT_QINT8 = 11,
  DT_QUINT8 = 12,
  DT_QINT32 = 13,
  DT_BFLOAT16 = 14,
  DT_QINT16 = 15,
  DT_QUINT16 = 16,
  DT_UINT16 = 17,
  DT_COMPLEX128 = 18,
  DT_HALF = 19,
  DT_RESOURCE = 20,
  DT_VARIANT = 21,
  DT_UINT32 = 22,
  DT_UINT64 = 23,
  // Of what a Variable gives, and what updates one.
  DT_FLOAT_REF = 101,
  DT_DOUBLE_REF = 102,
  DT_INT32_REF = 103,
  DT_UINT8_REF = 104,
  DT_INT16_REF = 105,
  DT_INT8_REF = 106,
  DT_STRING_REF = 107,
  DT_INT64_REF = 109,
  DT_BOOL_REF = 110,
  DT_BFLOAT16_REF = 114,
  DT_UINT16_REF = 117,
  DT_HALF_REF = 119,
  DT_UINT32_REF = 122,
  DT_UINT64_REF = 123,
};

constexpr int kDataTypeRefOffset = 100;

constexpr bool IsRefType(DataType type) { return static_cast<int>(type) > kDataTypeRefOffset; }
constexpr DataType MakeRefType(DataType type) {
  return IsRefType(type) ? type
                         : static_cast<DataType>(static_cast<int>(type) + kDataTypeRefOffset);
}
constexpr DataType RemoveRefType(DataType type) {
  return IsRefType(type) ? static_cast<DataType>(static_cast<int>(type) - kDataTypeRefOffset)
                         : type;
}
constexpr DataType BaseType(DataType type) { return RemoveRefType(type); }

template <class T>
struct DataTypeToEnum {
  static constexpr DataType value = DT_INVALID;
  static constexpr DataType v() { return value; }
};
template <DataType>
struct EnumToDataType;

namespace detail {

template <DataType kType>
struct EnumIs {
  static constexpr DataType value = kType;
  static constexpr DataType v() { return kType; }
  static constexpr DataType ref() { return MakeRefType(kType); }
};

}  // namespace detail

template <>
struct DataTypeToEnum<float> : detail::EnumIs<DT_FLOAT> {};
template <>
struct DataTypeToEnum<double> : detail::EnumIs<DT_DOUBLE> {};
template <>
struct DataTypeToEnum<std::int32_t> : detail::EnumIs<DT_INT32> {};
template <>
struct DataTypeToEnum<std::uint8_t> : detail::EnumIs<DT_UINT8> {};
template <>
struct DataTypeToEnum<std::int16_t> : detail::EnumIs<DT_INT16> {};
template <>
struct DataTypeToEnum<std::int8_t> : detail::EnumIs<DT_INT8> {};
template <>
struct DataTypeToEnum<tstring> : detail::EnumIs<DT_STRING> {};
template <>
struct DataTypeToEnum<long> : detail::EnumIs<sizeof(long) == 8 ? DT_INT64 : DT_INT32> {};
template <>
struct DataTypeToEnum<long long> : detail::EnumIs<DT_INT64> {};
template <>
struct DataTypeToEnum<bool> : detail::EnumIs<DT_BOOL> {};
template <>
struct DataTypeToEnum<bfloat16> : detail::EnumIs<DT_BFLOAT16> {};
template <>
struct DataTypeToEnum<std::uint16_t> : detail::EnumIs<DT_UINT16> {};
template <>
struct DataTypeToEnum<half> : detail::EnumIs<DT_HALF> {};
template <>
struct DataTypeToEnum<std::uint32_t> : detail::EnumIs<DT_UINT32> {};
template <>
struct DataTypeToEnum<unsigned long>
    : detail::EnumIs<sizeof(unsigned long) == 8 ? DT_UINT64 : DT_UINT32> {};
template <>
struct DataTypeToEnum<unsigned long long> : detail::EnumIs<DT_UINT64> {};

template <>
struct EnumToDataType<DT_FLOAT> {
  using Type = float;
};
template <>
struct EnumToDataType<DT_DOUBLE> {
  using Type = double;
};
template <>
struct EnumToDataType<DT_INT32> {
  using Type = std::int32_t;
};
template <>
struct EnumToDataType<DT_UINT8> {
  using Type = std::uint8_t;
};
template <>
struct EnumToDataType<DT_INT16> {
  using Type = std::int16_t;
};
template <>
struct EnumToDataType<DT_INT8> {
  using Type = std::int8_t;
};
template <>
struct EnumToDataType<DT_INT64> {
  using Type = std::int64_t;
};
template <>
struct EnumToDataType<DT_BOOL> {
  using Type = bool;
};
template <>
struct EnumToDataType<DT_BFLOAT16> {
  using Type = bfloat16;
};
template <>
struct EnumToDataType<DT_UINT16> {
  using Type = std::uint16_t;
};
template <>
struct EnumToDataType<DT_HALF> {
  using Type = half;
};
template <>
struct EnumToDataType<DT_UINT32> {
  using Type = std::uint32_t;
};
template <>
struct EnumToDataType<DT_UINT64> {
  using Type = std::uint64_t;
};

// Bytes of an element; 0 for what tensors here do not hold.
inline int DataTypeSize(DataType type) {
  switch (RemoveRefType(type)) {
    case DT_BOOL:
    case DT_INT8:
    case DT_UINT8:
      return 1;
    case DT_HALF:
    case DT_BFLOAT16:
    case DT_INT16:
    case DT_UINT16:
      return 2;
    case DT_FLOAT:
    case DT_INT32:
    case DT_UINT32:
      return 4;
    case DT_DOUBLE:
    case DT_INT64:
    case DT_UINT64:
      return 8;
    default:
      return 0;
  }
}

inline std::string DataTypeString(DataType type) {
  if (IsRefType(type)) return DataTypeString(RemoveRefType(type)) + "_ref";
  static constexpr const char* kNames[] = {
      "INVALID", "float", "double", "int32",   "uint8",   "int16",      "int8",     "string",
      "complex64", "int64", "bool", "qint8",   "quint8",  "qint32",     "bfloat16", "qint16",
      "quint16", "uint16", "complex128", "half", "resource", "variant", "uint32",   "uint64"};
  const int at = static_cast<int>(type);
  if (at >= 0 && at < 24) return kNames[at];
  return strings::StrCat("unknown dtype enum (", at, ")");
}

// "DT_FLOAT", as messages about attributes have it.
inline std::string DataType_Name(DataType type) {
  std::string name = "DT_" + DataTypeString(type);
  for (char& letter : name) {
    if (letter >= 'a' && letter <= 'z') letter = static_cast<char>(letter - 'a' + 'A');
  }
  return name;
}

inline bool DataTypeIsFloating(DataType type) {
  return type == DT_FLOAT || type == DT_DOUBLE || type == DT_HALF || type == DT_BFLOAT16;
}
inline bool DataTypeIsUnsigned(DataType type) {
  return type == DT_UINT8 || type == DT_UINT16 || type == DT_UINT32 || type == DT_UINT64;
}
inline bool DataTypeIsInteger(DataType type) {
  return type == DT_INT8 || type == DT_INT16 || type == DT_INT32 || type == DT_INT64 ||
         DataTypeIsUnsigned(type);
}

namespace detail {

constexpr std::uint32_t Bit(DataType type) {
  return type > 0 && type < 32 ? std::uint32_t{1} << static_cast<int>(type) : 0u;
}

template <class T, class F>
Status CallFor(F& f) {
  if constexpr (std::is_void_v<std::invoke_result_t<F&, T>>) {
    f(T());
    return Status();
  } else {
    return f(T());
  }
}

// Calls f with a value of the type; f returns a Status or nothing.
template <class F>
Status ForType(DataType type, F f) {
  switch (type) {
    case DT_FLOAT:
      return CallFor<float>(f);
    case DT_DOUBLE:
      return CallFor<double>(f);
    case DT_HALF:
      return CallFor<half>(f);
    case DT_BFLOAT16:
      return CallFor<bfloat16>(f);
    case DT_INT8:
      return CallFor<std::int8_t>(f);
    case DT_INT16:
      return CallFor<std::int16_t>(f);
    case DT_INT32:
      return CallFor<std::int32_t>(f);
    case DT_INT64:
      return CallFor<std::int64_t>(f);
    case DT_UINT8:
      return CallFor<std::uint8_t>(f);
    case DT_UINT16:
      return CallFor<std::uint16_t>(f);
    case DT_UINT32:
      return CallFor<std::uint32_t>(f);
    case DT_UINT64:
      return CallFor<std::uint64_t>(f);
    case DT_BOOL:
      return CallFor<bool>(f);
    default:
      return errors::Unimplemented("there are no tensors of type ", DataTypeString(type));
  }
}

}  // namespace detail
}  // namespace convgrad

#endif  // CONVGRAD_CC_TYPES_H_
