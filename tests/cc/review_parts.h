// What the parts of review_parts.cc hand each other.
#ifndef REVIEW_PARTS_H_
#define REVIEW_PARTS_H_

#include "tensorflow/cc/client/client_session.h"
#include "tensorflow/cc/framework/gradients.h"
#include "tensorflow/cc/ops/standard_ops.h"

struct Made {
  const tensorflow::Scope* scope;
  tensorflow::Output output;
};
using Given = Made;
using Part = int(const Given* given, Made* made);

#endif  // REVIEW_PARTS_H_
