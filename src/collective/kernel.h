// What happens to data on its way through a schedule. The pipeline moves messages and knows nothing else of them; a
// kernel knows where a block lies in memory and how it is coded. Another codec, another operation, or arrays in GPU
// memory are another kernel, not another collective. Messages lie where plain code can reach them, plain elements on
// their way there or where arrays do; see memory.h for those.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "collective/layout.h"
#include "core/error.h"
#include "frame/frame.h"

namespace laconic {

/// A call that is to be made: of encode(), sum() or deliver(), or where it is final of encode_final() or sum_final().
struct Task {
  enum class What : std::uint8_t { encode, sum, deliver };
  What what = What::encode;
  Part part{};
  bool final = false;
  bool sent_on = true;                   ///< as sum_final() has it
  std::optional<frame::Bytes> held{};    ///< of a sum
  std::vector<frame::Bytes> received{};  ///< of a sum; or what is delivered
  frame::MutBytes out{};
};

/// Called by one thread. Messages come from other ranks: a kernel checks them and throws Error(corrupt).
class Kernel {
 public:
  /// Per block: what this rank brings (null data where it brings nothing), and where it goes (null data: not wanted).
  Kernel(std::vector<ConstArray> operands, std::vector<MutArray> results)
      : operands_(std::move(operands)), results_(std::move(results)) {
    for (const MutArray& r : results_) result_bytes_ += r.data != nullptr ? r.bytes() : 0;
  }
  virtual ~Kernel() = default;
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  [[nodiscard]] ConstArray operand(const Part& part) const {
    return slice_of(operands_[static_cast<std::size_t>(part.block)], part.first, part.count);
  }
  [[nodiscard]] MutArray result(const Part& part) const {
    return slice_of(results_[static_cast<std::size_t>(part.block)], part.first, part.count);
  }

  /// Bytes of one element when nothing is compressed.
  [[nodiscard]] virtual std::size_t element_bytes() const = 0;

  /// Most bytes of a message that says `values` elements.
  [[nodiscard]] virtual std::size_t capacity(std::size_t values) const = 0;

  /// This rank's own operand, as a message. Returns its bytes.
  virtual std::size_t encode(const Part& part, frame::MutBytes out) = 0;

  /// True: encode_final() takes less time than encode() and, later, deliver().
  [[nodiscard]] virtual bool delivers_as_it_encodes() const { return false; }

  /// encode() and deliver() at once, where nothing is combined with this rank's own operand.
  virtual std::size_t encode_final(const Part& /*part*/, frame::MutBytes /*out*/) {
    throw Error(Code::internal, "this kernel does not deliver as it encodes");
  }

  /// This rank's own operand combined with a received message.
  virtual std::size_t encode_add(const Part& part, frame::Bytes received, frame::MutBytes out) = 0;

  /// Two messages combined.
  virtual std::size_t add(const Part& part, frame::Bytes held, frame::Bytes received, frame::MutBytes out) = 0;

  /// How many received messages sum() takes at once. Where that is more than one, the pipeline keeps messages until so
  /// many are there, or somebody waits for the sum.
  [[nodiscard]] virtual std::size_t most_addends() const { return 1; }

  /// What is held (nothing: this rank's own operand) combined with received messages, in this order.
  virtual std::size_t sum(const Part& part, std::optional<frame::Bytes> held, std::span<const frame::Bytes> received,
                          frame::MutBytes out) {
    if (received.size() != 1) throw Error(Code::internal, "more messages at once than this kernel takes");
    return held ? add(part, *held, received[0], out) : encode_add(part, received[0], out);
  }

  /// True: sum_final() takes less time than sum() and, later, deliver().
  [[nodiscard]] virtual bool delivers_as_it_adds() const { return false; }

  /// sum() and deliver() at once, where nothing more is combined. `sent_on`: false where nobody asks for the message;
  /// out is room for it all the same, but may be left as it is, and the result be 0.
  virtual std::size_t sum_final(const Part& /*part*/, std::optional<frame::Bytes> /*held*/,
                                std::span<const frame::Bytes> /*received*/, frame::MutBytes /*out*/, bool /*sent_on*/) {
    throw Error(Code::internal, "this kernel does not deliver as it adds");
  }

  /// A message combined with another rank's operand, which came as plain elements. Like those of the two functions that
  /// follow, they lie in the host's memory or where arrays do.
  virtual std::size_t add_plain(const Part& /*part*/, frame::Bytes /*held*/, ConstArray /*received*/,
                                frame::MutBytes /*out*/) {
    throw Error(Code::internal, "a schedule asked for a sum that this kernel does not form");
  }

  /// Plain elements that are to travel: those of the operand, or of the result where that is there already.
  virtual void read_plain(const Part& part, bool of_result, frame::MutBytes out) {
    const ConstArray x = of_result ? ConstArray(result(part)) : operand(part);
    std::memcpy(out.data(), x.data, x.bytes());
  }

  /// A part of the result that came as plain elements.
  virtual void deliver_plain(const Part& part, frame::Bytes elements) {
    std::memcpy(result(part).data, elements.data(), elements.size());
  }

  /// A part that this rank brings and keeps, and that no other rank has to do with.
  virtual void keep(const Part& part) = 0;

  /// The final message of a part of the result: goes into the caller's memory. This rank's own operand of the part has
  /// been encoded by then.
  virtual void deliver(const Part& part, frame::Bytes message) = 0;

  /// True: what this rank forwards is opened and encoded again by reopen(), as the naive way of compressing every
  /// message does.
  [[nodiscard]] virtual bool reopens() const { return false; }

  /// A received message of the result that goes on to other ranks: delivered, and encoded anew.
  virtual std::size_t reopen(const Part& /*part*/, frame::Bytes /*received*/, frame::MutBytes /*out*/) { return 0; }

  /// True: begin() does something.
  [[nodiscard]] virtual bool begins() const { return false; }

  /// Says that this call will be made soon, so that a kernel with whom others work may have them begin. What it names
  /// stays as it is until the call has been made, or forget(). Who announces several calls makes the first of them
  /// first.
  virtual void begin(const Task& /*task*/) noexcept {}

  /// No call that was announced will be made.
  virtual void forget() noexcept {}

  /// Of the time spent here so far, what went into arithmetic on plain values; asking sets it back to 0.
  double take_compute_seconds() { return std::exchange(compute_seconds_, 0); }

  /// Room that it has for itself, in the host's memory. It only grows.
  [[nodiscard]] virtual std::size_t scratch_bytes() const { return 0; }

  /// What to call between two pieces of work, so that messages make progress meanwhile.
  void on_pause(std::function<void()> progress) { progress_ = std::move(progress); }

 protected:
  void pause() const {
    if (progress_) progress_();
  }

  std::vector<ConstArray> operands_;
  std::vector<MutArray> results_;
  std::size_t result_bytes_ = 0;  ///< of all that this rank gets
  double compute_seconds_ = 0;

 private:
  std::function<void()> progress_;
};

}  // namespace laconic
