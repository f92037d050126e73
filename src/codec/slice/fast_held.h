// Whether marked values of a sum repeat the one before, as they must; sums of operands that an encoder wrote do. Seen
// in the planes of sums in stages, and of those written block by block with `first`; in the integers of the others of
// these. Written once over a vector policy V, and included by fast_sums.h.

/// Goes through a sum's blocks.
template <class V>
struct Held {
  bool start = true;  ///< everything up to here was marked

  /// Whether they do in the next block, given the positions whose values differ from the one before: with `first`,
  /// whose residuals are not zero. The values of marks at the start are that of the first position without one.
  bool check(std::uint64_t changes, std::uint64_t marks) {
    const std::uint64_t first_unmarked = start ? ~marks & (marks + 1) : 0;
    start = start && first_unmarked == 0;
    return (changes & (marks | first_unmarked)) == 0;
  }

  /// The same with `first`, by the block's planes, which were written from `before` to `out`.
  bool check(const Out& before, const Out& out, std::uint64_t marks) {
    if (marks == 0 && !start) return true;
    std::uint64_t any = 0;
    for (const std::uint8_t* at = before.dense; at != out.dense; at += 8) any |= load<std::uint64_t>(at);
    In in{nullptr, before.masks, before.bytes};
    while (in.masks != out.masks) any |= V::get_plane(in);
    return check(any, marks);
  }

  /// Of a sum that has been written, for any predictor, by its integers.
  template <class Writer>
  static bool check(const Writer& w, Choice<std::int32_t> choice, std::uint32_t fill_blocks) {
    using Codec = FastCodec<V>;
    Parsed sum;
    std::size_t dense = 0;
    std::size_t sparse = 0;
    int extended = 0;
    if (!V::split_codes(w.codes, sum.dense, sum.sparse, dense, sparse, extended) || extended != 0) return false;
    sum.choice = choice;
    sum.fill_blocks = fill_blocks;
    sum.in = {w.dense, w.masks, w.bytes};
    Integers q;
    Fill fill;
    std::memset(fill.marks, 0, sizeof fill.marks);
    Codec::get_blocks(sum, typename Codec::ToMemory{q.q}, fill);
    return !Codec::all_marked(fill) && Codec::is_held(q, fill.marks);
  }

  /// Of a sum in stages, whose blocks have planes as their codes say.
  template <Predictor P, class Planes>
  static bool check(const Planes& s, const std::uint8_t* codes, const Fill& fill) {
    Held held;
    Changes<P, Planes> changes{{s, codes}};
    for (int b = 0; b < chunk_blocks; ++b) {
      const std::uint64_t marks = (fill.blocks >> b & 1) != 0 ? fill.marks[b] : 0;
      if (P != Predictor::second && marks == 0 && !held.start) continue;
      if (!held.check(changes.of(b, marks), marks)) return false;
    }
    return !held.start;
  }

  /// The planes of a sum's blocks, lowest first.
  template <class Planes>
  struct SumPlanes {
    const Planes& s;
    const std::uint8_t* codes;
    [[nodiscard]] int count(int b) const { return codes[b] & 31; }
    [[nodiscard]] std::uint64_t plane(int b, int r) const { return V::Sums::plane(s, b, r); }
    /// Positions whose residuals are not zero.
    [[nodiscard]] std::uint64_t any(int b) const {
      if constexpr (requires { V::Sums::any_plane(s, b); }) {
        return V::Sums::any_plane(s, b);
      } else {
        std::uint64_t all = 0;
        for (int r = 0; r < count(b); ++r) all |= plane(b, r);
        return all;
      }
    }
  };

  /// of(b, marks): positions of block b whose values differ from the one before; right where they are marked, or the
  /// first that is not.
  template <Predictor P, class Planes>
  struct Changes : SumPlanes<Planes> {
    [[nodiscard]] std::uint64_t of(int b, std::uint64_t) const { return this->any(b); }
  };

  template <class Planes>
  struct Changes<Predictor::none, Planes> : SumPlanes<Planes> {
    [[nodiscard]] std::uint64_t of(int b, std::uint64_t) const {
      if constexpr (requires { V::Sums::any_change(this->s, b); }) {
        return V::Sums::any_change(this->s, b);
      } else {
        return by_planes(b);
      }
    }
    [[nodiscard]] std::uint64_t by_planes(int b) const {
      const int now = this->count(b);
      const int before = b > 0 ? this->count(b - 1) : now;
      std::uint64_t changes = 0;
      for (int r = 0; r < now || r < before; ++r) {
        const std::uint64_t plane = r < now ? this->plane(b, r) : 0;
        const std::uint64_t last = b == 0 ? plane & 1 : r < before ? this->plane(b - 1, r) >> 63 : 0;
        changes |= plane ^ (plane << 1 | last);
      }
      return changes;
    }
  };

  /// Where a run of marks begins the sum of all residuals up to there is the difference; within the run, the residual.
  template <class Planes>
  struct Changes<Predictor::second, Planes> : SumPlanes<Planes> {
    std::uint32_t reached = 0;
    std::uint64_t marked_before = 0;

    std::uint64_t of(int b, std::uint64_t marks) {
      std::uint64_t begins = marks & ~(marks << 1 | marked_before);
      marked_before = marks >> 63;
      std::uint64_t changes = marks != 0 || b == 0 ? this->any(b) & ~begins : 0;
      std::uint64_t rest = ~std::uint64_t{0};
      for (; begins != 0; begins &= begins - 1) {
        const std::uint64_t up_to = begins ^ (begins - 1);
        reached += sum(b, rest & up_to);
        rest &= ~up_to;
        if (reached != 0) changes |= begins & (0 - begins);
      }
      reached += sum(b, rest);
      return changes;
    }
    /// Of the residuals in such positions. Without the sign, which is plane 0, they are the planes above: inverted
    /// where it is set.
    [[nodiscard]] std::uint32_t sum(int b, std::uint64_t positions) const {
      const int w = this->count(b);
      if (w == 0) return 0;
      const std::uint64_t sign = this->plane(b, 0);
      const auto ones = [&](std::uint64_t v) {
        return static_cast<std::uint32_t>(__builtin_popcountll(v & positions));
      };
      std::uint32_t total = 0 - (ones(sign) << (w - 1));
      for (int r = 1; r < w; ++r) total += ones(this->plane(b, r) ^ sign) << (r - 1);
      return total;
    }
  };
};
