// SessionOptions, RunOptions and RunMetadata: what of TensorFlow's messages means something here.
#ifndef CONVGRAD_CC_SESSION_OPTIONS_H_
#define CONVGRAD_CC_SESSION_OPTIONS_H_

#include <cstdint>
#include <string>

namespace convgrad {

class ConfigProto {
 public:
  // Graphs may always grow behind a session's back; TensorFlow asks for this setting first.
  class Experimental {
   public:
    bool disable_optimize_for_static_graph() const { return growing_; }
    void set_disable_optimize_for_static_graph(bool growing) { growing_ = growing; }

   private:
    bool growing_ = false;
  };
  const Experimental& experimental() const { return experimental_; }
  Experimental* mutable_experimental() { return &experimental_; }

  // Threads of one op; 0 for as many as there are processors.
  std::int32_t intra_op_parallelism_threads() const { return intra_op_; }
  void set_intra_op_parallelism_threads(std::int32_t threads) { intra_op_ = threads; }
  // One op runs after the other: any number is as good as 1.
  std::int32_t inter_op_parallelism_threads() const { return inter_op_; }
  void set_inter_op_parallelism_threads(std::int32_t threads) { inter_op_ = threads; }
  // Whether nodes that were put on a device that is not there run on the CPU.
  bool allow_soft_placement() const { return soft_placement_; }
  void set_allow_soft_placement(bool allow) { soft_placement_ = allow; }

 private:
  Experimental experimental_;
  std::int32_t intra_op_ = 0;
  std::int32_t inter_op_ = 0;
  bool soft_placement_ = false;
};

struct SessionOptions {
  std::string target;  // "" or "local"
  ConfigProto config;
};

class RunOptions {
 public:
  enum TraceLevel { NO_TRACE = 0, SOFTWARE_TRACE = 1, HARDWARE_TRACE = 2, FULL_TRACE = 3 };

  // A run that takes longer ends between two nodes; 0 for no limit.
  std::int64_t timeout_in_ms() const { return timeout_; }
  void set_timeout_in_ms(std::int64_t timeout) { timeout_ = timeout; }
  // There are no traces: a run refuses any but NO_TRACE.
  TraceLevel trace_level() const { return trace_; }
  void set_trace_level(TraceLevel level) { trace_ = level; }

 private:
  std::int64_t timeout_ = 0;
  TraceLevel trace_ = NO_TRACE;
};

// Nothing is written into it.
class RunMetadata {};

}  // namespace convgrad

#endif  // CONVGRAD_CC_SESSION_OPTIONS_H_
