// Headers by an all-gather over a communicator of their own.
#include <cstring>
#include <optional>

#include "transport/nccl/headers.h"

namespace laconic::nccl {
namespace {

class NcclHeaders final : public Headers {
 public:
  NcclHeaders(const Link& data, const Setup& s)
      : size_(static_cast<std::size_t>(s.size)),
        mine_(s.pool.take(sizeof(Header))),
        all_(s.pool.take(sizeof(Header) * size_)),
        link_(data.comm(), s.rank, s.timeout, s.stop) {}

  [[nodiscard]] bool on_device() const override { return true; }

  void begin(const Header& mine) override {
    ended_ = false;
    std::memcpy(mine_.get(), &mine, sizeof mine);
    link_.require("ncclAllGather",
                  pncclAllGather(mine_.get(), all_.get(), sizeof(Header), ncclUint8, link_.comm(), link_.stream()));
    gathering_.emplace(link_, link_.stream());
  }

  [[nodiscard]] bool ended() override {
    if (!link_.ready()) return false;
    if (gathering_ && gathering_->done()) {
      gathering_.reset();
      ended_ = true;
    }
    return ended_;
  }

  void require_ranks() const override {}  // NCCL says so itself, see Link::ready()

  [[nodiscard]] std::span<const Header> all() const override {
    return {reinterpret_cast<const Header*>(all_.get()), size_};  // rooms are aligned for anything
  }

  void close(double timeout) override { link_.close(timeout); }
  void abort() noexcept override { link_.abort(); }
  void hang_up() noexcept override {}
  void await_silence() noexcept override { link_.await_silence(); }

 private:
  std::size_t size_;
  Pinned mine_, all_;
  Link link_;
  std::optional<Operation> gathering_;
  bool ended_ = false;
};

}  // namespace

std::unique_ptr<Headers> make_nccl_headers(Link& data, const Setup& setup) {
  return std::make_unique<NcclHeaders>(data, setup);
}

}  // namespace laconic::nccl
