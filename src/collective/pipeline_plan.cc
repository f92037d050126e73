// What a pipeline will do, worked out before anything moves: messages, their order, and when sums are formed.
#include <algorithm>
#include <utility>

#include "collective/pipeline.h"

namespace laconic {
namespace {

// Short pieces of one step to one peer share a message up to this many uncompressed bytes: about what a message's own
// cost (tens of microseconds) is worth.
constexpr std::size_t most_bytes_to_share = std::size_t{64} << 10;

}  // namespace

// Program order per peer on both sides is what lets one tag do: the n-th message that a rank sends to another is the
// n-th that the other awaits from it.
void Pipeline::plan() {
  std::size_t longest = 0;
  slots_.resize(layout_.blocks());
  sent_.assign(layout_.blocks(), false);
  for (int b = 0; b < static_cast<int>(layout_.blocks()); ++b) {
    slots_[static_cast<std::size_t>(b)].resize(layout_.segments(b));
    longest = std::max(longest, layout_.count(b));
  }
  capacity_ = std::max(kernel_.capacity(std::min(longest, layout_.segment_values())), most_poison_bytes + 1);
  final_version_.assign(layout_.blocks(), 0);
  for (const schedule::Step& step : program_.steps) {
    StepPlan& planned = steps_.emplace_back();
    for (Envelope& e : pack(step.sends)) {
      auto& sends = planned.sends;
      if (sends.empty() || sends.back().first != e.peer) sends.emplace_back(e.peer, 0);
      ++sends.back().second;
      for (const Piece& p : e.pieces) {
        sent_[static_cast<std::size_t>(p.block)] = true;
        if (!p.plain) ++slot(p).sends_left;
      }
      capacity_ = std::max(capacity_, capacity_for(e));
      lanes_[e.peer].envelopes.push_back(std::move(e));
    }
    for (Envelope& e : pack(step.recvs)) {
      ++(e.pieces[0].plain ? planned.plain : planned.coded);
      capacity_ = std::max(capacity_, capacity_for(e));
      inbox_of(e).envelopes.push_back(std::move(e));
    }
    for (const schedule::Transfer& t : step.recvs) ++final_version_[static_cast<std::size_t>(t.block)];
  }
  if (kernel_.most_addends() > 1) plan_sums();
}

/// Which receives bring a block's sum up to date: what somebody sends or keeps, what plain elements or a copy come
/// after, and as many as the kernel adds at once.
void Pipeline::plan_sums() {
  std::vector<std::vector<bool>> is_wanted(layout_.blocks()), can_wait(layout_.blocks());
  for (std::size_t b = 0; b < layout_.blocks(); ++b) {
    is_wanted[b].assign(static_cast<std::size_t>(final_version_[b]) + 1, program_.exclusive);
    is_wanted[b].back() = true;
  }
  for (const schedule::Step& step : program_.steps) {
    for (const schedule::Transfer& t : step.sends) {
      const auto block = static_cast<std::size_t>(t.block);
      if (!t.plain) is_wanted[block][can_wait[block].size()] = true;
    }
    for (const schedule::Transfer& t : step.recvs) {
      can_wait[static_cast<std::size_t>(t.block)].push_back(t.how == schedule::Combine::reduce && !t.plain);
    }
  }
  sums_.resize(layout_.blocks());
  for (std::size_t b = 0; b < layout_.blocks(); ++b) {
    std::size_t waiting = 0;
    for (std::size_t v = 0; v < can_wait[b].size(); ++v) {
      const bool now = is_wanted[b][v + 1] || !can_wait[b][v + 1] || ++waiting == kernel_.most_addends();
      if (now) waiting = 0;
      sums_[b].push_back(now);
    }
  }
}

/// The messages of one step, peers in order of appearance. Sender and receiver come to the same ones in the same order.
std::vector<Pipeline::Envelope> Pipeline::pack(const std::vector<schedule::Transfer>& transfers) const {
  struct Pile {
    std::vector<Piece> pieces;
    std::size_t bytes = 0;
    std::size_t next = 0;  // of those that travel alone
    bool whole = true;     // messages, and no block is cut: whoever cuts one wants its segments to travel apart
  };
  std::vector<int> peers;
  std::map<int, Pile> piles;
  for (const schedule::Transfer& t : transfers) {
    if (!piles.contains(t.peer)) peers.push_back(t.peer);
    Pile& pile = piles[t.peer];
    const int version = final_version_[static_cast<std::size_t>(t.block)];  // so far
    for (std::size_t k = 0; k < layout_.segments(t.block); ++k) {
      pile.pieces.push_back({t.block, k, t.how, version, t.plain});
    }
    pile.bytes += layout_.count(t.block) * kernel_.element_bytes();
    pile.whole = pile.whole && !t.plain && layout_.segments(t.block) <= 1;
  }
  // A segment goes to all peers, and comes from all, before the next one: so sums of all that comes can begin early.
  std::vector<Envelope> envelopes;
  for (bool more = true, first = true; std::exchange(more, false); first = false) {
    for (const int peer : peers) {
      Pile& pile = piles[peer];
      if (first && pile.pieces.size() > 1 && pile.whole && pile.bytes <= most_bytes_to_share) {
        envelopes.push_back({peer, std::move(pile.pieces)});
        pile.pieces.clear();
      }
      if (pile.next == pile.pieces.size()) continue;
      envelopes.push_back({peer, {pile.pieces[pile.next++]}});
      more = true;
    }
  }
  return envelopes;
}

std::size_t Pipeline::capacity_for(const Envelope& envelope) const {
  const Piece& first = envelope.pieces[0];
  if (first.plain) return plain_bytes(first);
  if (envelope.pieces.size() == 1) return kernel_.capacity(part(first).count);
  std::size_t bytes = 0;
  for (const Piece& p : envelope.pieces) bytes += piece_head + kernel_.capacity(part(p).count);
  return bytes;
}

}  // namespace laconic
