// Placeholders and feeds, and ClientSession::Run in its forms.
#include "show.h"
#include "tensorflow/cc/client/client_session.h"
#include "tensorflow/cc/ops/standard_ops.h"
#include "tensorflow/core/public/session_options.h"

using namespace tensorflow;
using namespace tensorflow::ops;

int main() {
  Scope root = Scope::NewRootScope();
  auto a = Placeholder(root, DT_INT32);
  auto c = Add(root, a, {41});
  auto x = Placeholder(root.WithOpName("x"), DT_FLOAT, Placeholder::Shape({-1, 2}));
  auto y = Placeholder(root.WithOpName("y"), DT_FLOAT, Placeholder::Attrs().Shape(PartialTensorShape({2, -1})));
  auto product = MatMul(root.WithOpName("product"), x, y);
  auto squared = Square(root.WithOpName("squared"), product);
  SessionOptions growing;  // TensorFlow asks for this before a graph may grow behind a session's back
  growing.config.mutable_experimental()->set_disable_optimize_for_static_graph(true);
  ClientSession session(root, growing);
  std::vector<Tensor> outputs;

  Show("scalar", session.Run({{a, 1}}, {c}, &outputs));
  Show("c", outputs[0]);
  Show("list", session.Run({{a, {1, 2, 3}}}, {c}, &outputs));
  Show("c", outputs[0]);
  Show("two feeds", session.Run({{x, {{1.f, 2.f}}}, {y, {{3.f}, {4.f}}}}, {product}, &outputs));
  Show("product", outputs[0]);
  Show("more rows", session.Run({{x, {{1.f, 2.f}, {5.f, 6.f}}}, {y, {{3.f, 1.f}, {4.f, 1.f}}}}, {product, squared}, &outputs));
  Show("fetched", std::to_string(outputs.size()));
  Show("product", outputs[0]);
  Show("squared", outputs[1]);

  const Tensor given = Numbers(DT_FLOAT, TensorShape({2, 2}), 5);
  ClientSession::FeedType feeds;
  feeds.insert({x, given});
  feeds.emplace(y, Input::Initializer({1.f, 0.f, 0.f, 1.f}, {2, 2}));
  Show("a feed type", session.Run(feeds, {squared}, &outputs));
  Show("squared", outputs[0]);
  Show("product replaced", session.Run({{product, {{7.f, -2.f}}}}, {squared}, &outputs));
  Show("squared", outputs[0]);
  Show("fetched twice", session.Run({{product, {{3.f}}}}, {squared, squared}, &outputs));
  Show("first", outputs[0]);
  Show("second", outputs[1]);
  Show("nothing fetched", session.Run({{a, 1}}, {}, &outputs));
  Show("fetched", std::to_string(outputs.size()));
  Show("a target", session.Run({{a, 1}, {product, 1.f}}, {c}, {squared.y.op(), c.z.op()}, &outputs));
  Show("fetched", std::to_string(outputs.size()));
  Show("only a target", session.Run({{a, 1}}, {}, {c.z.op()}, nullptr));
  RunMetadata metadata;
  Show("options", session.Run(RunOptions(), {{a, 5}}, {c}, {}, &outputs, &metadata));
  Show("c", outputs[0]);

  auto later = Multiply(root.WithOpName("later"), c, 2);
  Show("added later", session.Run({{a, 1}}, {later}, &outputs));
  Show("later", outputs[0]);

  SessionOptions options;
  options.config.set_intra_op_parallelism_threads(1);
  options.config.set_inter_op_parallelism_threads(1);
  ClientSession single(root, options);
  Show("one thread", single.Run({{a, 1}}, {later, c}, &outputs));
  Show("later", outputs[0]);
  ClientSession named(root, "");
  Show("target", named.Run({{a, 2}}, {later}, &outputs));
  Show("later", outputs[0]);

  Show("fed and fetched", session.Run({{a, 1}}, {a}, &outputs));
  Show("not fed", session.Run({c}, &outputs));
  Show("wrong type", session.Run({{a, 1.f}}, {c}, &outputs));
  Show("wrong shape", session.Run({{x, {{1.f, 2.f, 3.f}}}, {y, {{3.f}, {4.f}}}}, {product}, &outputs));
  Show("wrong rank", session.Run({{x, {1.f, 2.f}}, {y, {{3.f}, {4.f}}}}, {product}, &outputs));
  Show("bad list", session.Run({{x, Input::Initializer({1.f}, {2, 2})}}, {product}, &outputs));
  return 0;
}
