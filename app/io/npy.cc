#include "io/npy.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <string>
#include <string_view>

#include "exit_code.h"

namespace laconic::app {
namespace {

constexpr std::array<std::uint8_t, 6> npy_magic = {0x93, 'N', 'U', 'M', 'P', 'Y'};
constexpr std::size_t largest_header = 1 << 20;

/// Walks the Python dictionary literal of a header: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
class HeaderText {
 public:
  HeaderText(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  [[noreturn]] void fail(const std::string& why) const {
    throw Failure(Exit::bad_data, fmt::format("'{}': damaged .npy header: {}", file_, why));
  }
  void skip_space() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }
  bool accept(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(fmt::format("'{}' expected at position {}", c, at_));
  }
  std::string_view quoted() {
    skip_space();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"') fail(fmt::format("a quoted name expected at position {}", at_));
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) fail("a quote is not closed");
    const auto word = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return word;
  }
  bool boolean() {
    skip_space();
    for (const bool value : {true, false}) {
      const std::string_view word = value ? "True" : "False";
      if (text_.substr(at_, word.size()) == word) {
        at_ += word.size();
        return value;
      }
    }
    fail("True or False expected");
  }
  std::uint64_t number() {
    skip_space();
    std::uint64_t value = 0;
    const auto [next, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc()) fail(fmt::format("a number expected at position {}", at_));
    at_ = static_cast<std::size_t>(next - text_.data());
    accept('L');  // written by Python 2
    return value;
  }
  bool is_at_end() {
    skip_space();
    return at_ == text_.size();
  }
  Dims tuple() {
    Dims dims;
    expect('(');
    while (!accept(')')) {
      if (dims.size() == max_dims) fail("too many dimensions");
      dims.push_back(number());
      if (!accept(',')) {
        expect(')');
        if (dims.size() == 1) fail("a shape of one number without a comma");
        break;
      }
    }
    return dims;
  }

 private:
  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0;
};

DType dtype_of(std::string_view descr, const std::string& file) {
  struct Name {
    std::string_view text;
    DType dtype;
  };
  static constexpr std::array<Name, 7> names = {{{"f4", DType::f32},
                                                 {"f8", DType::f64},
                                                 {"f2", DType::f16},
                                                 {"i4", DType::i32},
                                                 {"i8", DType::i64},
                                                 {"u4", DType::u32},
                                                 {"u8", DType::u64}}};
  const char order = descr.empty() ? '\0' : descr.front();
  const auto* const found = std::find_if(names.begin(), names.end(),
                                         [&](const Name& n) { return descr.size() == 3 && n.text == descr.substr(1); });
  constexpr std::string_view orders = "<>=|";
  if (found == names.end() || orders.find(order) == std::string_view::npos)
    throw Failure(Exit::bad_data, fmt::format("'{}': element type '{}' is not supported; convert it with "
                                              "numpy.asarray(x, dtype='float32') or another of f2 f4 f8 i4 i8 u4 u8",
                                              file, descr));
  if (order == '>')
    throw Failure(Exit::bad_data, fmt::format("'{}' is big endian ('{}'); save it again with x.astype('<{}')", file,
                                              descr, found->text));
  return found->dtype;
}

const char* descr_of(DType t) {
  switch (t) {
    case DType::f32:
      return "<f4";
    case DType::f64:
      return "<f8";
    case DType::f16:
      return "<f2";
    case DType::i32:
      return "<i4";
    case DType::i64:
      return "<i8";
    case DType::u32:
      return "<u4";
    case DType::u64:
      return "<u8";
    case DType::bf16:
      break;
  }
  throw Failure(Exit::usage, "bf16 cannot be written as .npy (NumPy has no such type); write a raw .bf16 file");
}

Shape parse(std::string_view text, const std::string& file) {
  HeaderText header(text, file);
  Shape shape;
  bool have_descr = false;
  bool have_order = false;
  bool have_shape = false;
  bool fortran = false;
  header.expect('{');
  while (!header.accept('}')) {
    const std::string_view key = header.quoted();
    header.expect(':');
    if (key == "descr") {
      if (header.accept('['))
        throw Failure(Exit::bad_data, fmt::format("'{}' holds records; save one field of it", file));
      shape.dtype = dtype_of(header.quoted(), file);
      have_descr = true;
    } else if (key == "fortran_order") {
      have_order = true;
      fortran = header.boolean();
    } else if (key == "shape") {
      shape.dims = header.tuple();
      have_shape = true;
    } else {
      header.fail(fmt::format("unknown key '{}'", key));
    }
    if (!header.accept(',')) {
      header.expect('}');
      break;
    }
  }
  if (!header.is_at_end()) header.fail("text follows its closing brace");
  if (!have_descr || !have_order || !have_shape) header.fail("descr, fortran_order and shape must all be there");
  // Along one axis, or of nothing, both orders are the same, and some programs write all their arrays as Fortran's.
  if (fortran && std::count(shape.dims.begin(), shape.dims.end(), 0U) == 0 &&
      std::count_if(shape.dims.begin(), shape.dims.end(), [](auto d) { return d != 1; }) > 1)
    throw Failure(Exit::bad_data,
                  fmt::format("'{}' is in Fortran order; save it again with numpy.ascontiguousarray(x)", file));
  return shape;
}

}  // namespace

bool is_npy(const InputFile& file) {
  std::array<std::uint8_t, npy_magic.size()> head{};
  if (file.size() < head.size()) return false;
  file.read_at(0, head);
  return head == npy_magic;
}

NpyHeader read_npy_header(const InputFile& file) {
  std::array<std::uint8_t, 12> head{};
  const auto fail = [&](const char* why) {
    throw Failure(Exit::bad_data, fmt::format("'{}': damaged .npy header: {}", file.path(), why));
  };
  if (file.size() < head.size()) fail("shorter than any header");
  file.read_at(0, head);
  const unsigned version = head[6];
  if (version < 1 || version > 3 || head[7] != 0) fail("version is none of 1.0, 2.0, 3.0");
  std::uint64_t length = head[8] | head[9] << 8;
  std::uint64_t start = 10;
  if (version >= 2) {
    length |= static_cast<std::uint64_t>(head[10]) << 16 | static_cast<std::uint64_t>(head[11]) << 24;
    start = 12;
  }
  if (length > largest_header || start + length > file.size()) fail("its length does not fit the file");
  std::string text(length, '\0');
  file.read_at(start, {reinterpret_cast<std::uint8_t*>(text.data()), text.size()});
  return {parse(text, file.path()), start + length};
}

std::vector<std::uint8_t> make_npy_header(const Shape& shape) {
  std::string dims;
  for (const std::uint64_t d : shape.dims) dims += fmt::format("{},{}", d, shape.dims.size() == 1 ? "" : " ");
  if (shape.dims.size() > 1) dims.resize(dims.size() - 2);
  std::string text =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr_of(shape.dtype), dims);
  // NumPy pads with spaces and a newline so that the data begin on a multiple of 64 bytes.
  constexpr std::size_t before = 10;
  text.resize((before + text.size() + 1 + 63) / 64 * 64 - before - 1, ' ');
  text += '\n';
  std::vector<std::uint8_t> bytes(before + text.size());
  std::copy(npy_magic.begin(), npy_magic.end(), bytes.begin());
  bytes[6] = 1;  // version 1.0
  bytes[8] = static_cast<std::uint8_t>(text.size() & 0xff);
  bytes[9] = static_cast<std::uint8_t>(text.size() >> 8);
  std::copy(text.begin(), text.end(), bytes.begin() + before);
  return bytes;
}

}  // namespace laconic::app
