// File formats of the command: .npy headers, names, .lcz headers, outputs that appear whole or not at all.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "exit_code.h"
#include "io/array_file.h"
#include "io/lcz.h"
#include "io/npy.h"

namespace laconic::app::io_test {
namespace {

namespace fs = std::filesystem;

/// A folder of its own for each test, removed afterwards.
class AppIo : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "laconic-io-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  [[nodiscard]] std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string make(const std::string& name, const std::string& bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
    return path(name);
  }
  /// A .npy file with this header text and `values` zero bytes.
  std::string make_npy(const std::string& text, std::size_t values, char version = 1) const {
    std::string bytes = std::string("\x93NUMPY") + version + '\0';
    bytes += static_cast<char>(text.size() & 0xff);
    bytes += static_cast<char>(text.size() >> 8);
    if (version > 1) bytes += std::string(2, '\0');
    return make("x.npy", bytes + text + std::string(values, '\0'));
  }
  [[nodiscard]] std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  fs::path folder_;
};

/// The exit code that f fails with; ok when it does not.
template <class F>
Exit code_of(F&& f) {
  try {
    f();
  } catch (const Failure& e) {
    EXPECT_FALSE(std::string(e.what()).empty());
    return e.code();
  }
  return Exit::ok;
}

TEST_F(AppIo, NpyHeaderRoundTrips) {
  for (const DType t : {DType::f16, DType::f32, DType::f64, DType::i32, DType::i64, DType::u32, DType::u64}) {
    for (const Dims& dims : {Dims{}, Dims{5}, Dims{2, 3}, Dims{0, 7}, Dims{1, 2, 3, 4}}) {
      const Shape shape{t, dims};
      const auto header = make_npy_header(shape);
      EXPECT_EQ(header.size() % 64, 0U);
      make("h.npy", std::string(header.begin(), header.end()));
      const NpyHeader back = read_npy_header(InputFile(path("h.npy")));
      EXPECT_EQ(back.shape, shape);
      EXPECT_EQ(back.data_offset, header.size());
    }
  }
}

TEST_F(AppIo, NpyHeaderAsOthersWriteIt) {
  for (const char* text : {"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }",
                           "{\"shape\":(3L,4L),\"fortran_order\":False,\"descr\":\"<f4\"}",
                           "{ 'shape' : ( 3 , 4 ) , 'descr' : '=f4' , 'fortran_order' : False }  \n"}) {
    for (const char version : {1, 2, 3}) {
      const ArrayReader in(make_npy(text, 48, version), {});
      EXPECT_EQ(in.shape(), (Shape{DType::f32, {3, 4}})) << text;
      EXPECT_EQ(in.kind(), FileKind::npy);
    }
  }
}

TEST_F(AppIo, NpyInFortranOrderAlongOneAxis) {
  for (const char* shape : {"()", "(12,)", "(12, 1)", "(1, 12, 1)"}) {
    const auto text = std::string("{'descr': '<f4', 'fortran_order': True, 'shape': ") + shape + ", }";
    EXPECT_EQ(ArrayReader(make_npy(text, shape[1] == ')' ? 4 : 48), {}).kind(), FileKind::npy) << shape;
  }
}

TEST_F(AppIo, NpyHeaderThatCannotBeRead) {
  for (const char* text :
       {"{'descr': '>f4', 'fortran_order': False, 'shape': (3, 4), }",
        "{'descr': '<f4', 'fortran_order': True, 'shape': (3, 4), }",
        "{'descr': '<c8', 'fortran_order': False, 'shape': (3, 4), }",
        "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3, 4), }",
        "{'descr': '<f4', 'fortran_order': False}", "{'descr': '<f4', 'fortran_order': False, 'shape': (3, -4), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4", "{'descr", "", "nonsense",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (18446744073709551615, 18446744073709551615), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999999, ), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (12), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), } and more"}) {
    const std::string file = make_npy(text, 48);
    EXPECT_EQ(code_of([&] { const ArrayReader in(file, {}); }), Exit::bad_data) << text;
  }
}

TEST_F(AppIo, NpyOfAnotherLengthThanItsHeaderSays) {
  const char* text = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }";
  for (const std::size_t bytes : {0U, 47U, 49U})
    EXPECT_EQ(code_of([&] { const ArrayReader in(make_npy(text, bytes), {}); }), Exit::bad_data) << bytes;
}

TEST_F(AppIo, HeaderLengthBeyondTheFile) {
  EXPECT_EQ(code_of([&] { const ArrayReader in(make("x.npy", std::string("\x93NUMPY\x01\x00\xff\xff{'de", 14)), {}); }),
            Exit::bad_data);
  EXPECT_EQ(
      code_of([&] { const ArrayReader in(make("y.npy", std::string("\x93NUMPY\x04\x00\x01\x00 ....", 14)), {}); }),
      Exit::bad_data);
}

TEST_F(AppIo, NamesTellTypeAndDims) {
  EXPECT_EQ(*hint_from_name("a/wave_marmousi_12x200x400.f32").dims, (Dims{12, 200, 400}));
  EXPECT_EQ(*hint_from_name("a/wave_marmousi_12x200x400.f32").dtype, DType::f32);
  EXPECT_EQ(*hint_from_name("precip_20480.f64").dims, (Dims{20480}));
  EXPECT_EQ(*hint_from_name("x.bf16").dtype, DType::bf16);
  EXPECT_FALSE(hint_from_name("x.bf16").dims);
  EXPECT_FALSE(hint_from_name("step_x.f32").dims);
  EXPECT_FALSE(hint_from_name("run_12xx4.f32").dims);
  EXPECT_FALSE(hint_from_name("data_3x4.bin").dtype);
}

TEST_F(AppIo, RawFilesNeedAllTheirBytes) {
  const std::string file = make("v_3x4.f32", std::string(48, 'x'));
  EXPECT_EQ(ArrayReader(file, {}).count(), 12U);
  EXPECT_EQ(ArrayReader(file, {DType::f64, Dims{6}}).count(), 6U);
  EXPECT_EQ(code_of([&] { const ArrayReader in(file, {std::nullopt, Dims{3, 5}}); }), Exit::bad_data);
  EXPECT_EQ(code_of([&] { const ArrayReader in(make("odd.f32", std::string(47, 'x')), {}); }), Exit::bad_data);
  EXPECT_EQ(code_of([&] { const ArrayReader in(make("no.type", "abcd"), {}); }), Exit::usage);
  EXPECT_EQ(code_of([&] { const ArrayReader in(path("absent.f32"), {}); }), Exit::no_input);
  EXPECT_EQ(code_of([&] { const ArrayReader in(folder_.string(), {DType::f32, {}}); }), Exit::no_input);
}

TEST_F(AppIo, DimsAreRefusedExactly) {
  for (const char* text : {"", "3x", "x3", "3y4", "3x-4", "3 x 4", "99999999999999999999"})
    EXPECT_EQ(code_of([&] { parse_dims(text); }), Exit::usage) << text;
  EXPECT_EQ(parse_dims("3,4x5"), (Dims{3, 4, 5}));
  EXPECT_EQ(code_of([] { count_of({DType::f64, {1ULL << 40, 1ULL << 40}}, "f"); }), Exit::bad_data);
  EXPECT_EQ(count_of({DType::f64, {1ULL << 40, 1ULL << 40, 0}}, "f"), 0U);
}

TEST_F(AppIo, OutputAppearsOnlyWhenCommitted) {
  const std::vector<std::uint8_t> data(1000, 7);
  {
    OutputFile out(path("out"), false);
    out.write(data);
    EXPECT_FALSE(fs::exists(path("out")));
  }
  EXPECT_EQ(files(), 0U) << "an abandoned output leaves nothing behind";
  OutputFile out(path("out"), false);
  out.write(data);
  out.commit();
  EXPECT_EQ(fs::file_size(path("out")), data.size());
  EXPECT_EQ(files(), 1U);
}

TEST_F(AppIo, OutputsMayHaveTheLongestName) {
  const std::string longest(255, 'x');
  write_file(path(longest), std::string("content"));
  write_file(path(longest), std::string("new content"));
  EXPECT_EQ(fs::file_size(path(longest)), 11U);
  EXPECT_EQ(files(), 1U);
  EXPECT_EQ(code_of([&] { const OutputFile out(path(longest + "x"), false); }), Exit::no_output);
  EXPECT_EQ(files(), 1U);
}

TEST_F(AppIo, ExistingOutputsAreKept) {
  make("out", "precious");
  EXPECT_EQ(code_of([&] { const OutputFile out(path("out"), false); }), Exit::no_output);
  EXPECT_EQ(code_of([&] { const OutputFile out(path("absent/out"), false); }), Exit::no_output);
  EXPECT_EQ(code_of([&] { const OutputFile out(folder_.string(), true); }), Exit::no_output);
  {
    OutputFile out(path("out"), true);
    out.write(std::vector<std::uint8_t>(10, 1));
  }
  EXPECT_EQ(fs::file_size(path("out")), 8U) << "without commit the old content stays";
}

TEST_F(AppIo, FilesThatComeMeanwhileAreKept) {
  for (const bool overwrite : {false, true}) {
    const std::string name = path(overwrite ? "replaced" : "kept");
    {
      OutputFile out(name, overwrite);
      out.write(std::vector<std::uint8_t>(10, 1));
      std::ofstream(name) << "precious";
      EXPECT_EQ(code_of([&] { out.commit(); }), overwrite ? Exit::ok : Exit::no_output);
    }
    EXPECT_EQ(fs::file_size(name), overwrite ? 10U : 8U);
  }
  EXPECT_EQ(files(), 2U);
}

TEST_F(AppIo, OutputThroughALinkKeepsTheLink) {
  make("real", "old");
  fs::create_symlink("real", path("link"));
  write_file(path("link"), std::string("new content"));
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(fs::file_size(path("real")), 11U);
}

TEST_F(AppIo, FullDeviceIsAnOutputFailure) {
  OutputFile out("/dev/full", false);
  EXPECT_EQ(code_of([&] { out.write(std::vector<std::uint8_t>(100, 1)); }), Exit::no_output);
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

TEST_F(AppIo, LczHeaderRoundTripsAndEveryFlippedBitIsSeen) {
  const Shape shape{DType::f64, {3, 0, 5}};
  const auto header = make_lcz_header(shape, FileKind::npy);
  const std::string good(header.begin(), header.end());
  const LczReader in(make("x.lcz", good));
  EXPECT_EQ(in.shape(), shape);
  EXPECT_EQ(in.original(), FileKind::npy);
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
    const std::string file = make("bad.lcz", bad);
    const Exit code = code_of([&] { const LczReader reader(file); });
    EXPECT_TRUE(code == Exit::corrupt || code == Exit::bad_data) << "bit " << bit;
  }
  for (std::size_t size = 0; size < good.size(); ++size) {
    const std::string file = make("short.lcz", good.substr(0, size));
    EXPECT_NE(code_of([&] { const LczReader reader(file); }), Exit::ok) << size;
  }
}

TEST_F(AppIo, LczFramesAreAcceptedInTheirPlacesOnly) {
  const std::size_t n = 100, frames = 3;
  const Shape shape{DType::f32, {frames * n}};
  const auto header = make_lcz_header(shape, FileKind::raw);
  std::vector<std::string> parts;
  LczSeal seal;
  seal.add_header(header);
  for (std::size_t f = 0; f < frames; ++f) {
    const std::vector<float> x(n, static_cast<float>(f));
    std::vector<std::uint8_t> frame(frame::capacity(DType::f32, n));
    frame.resize(frame::encode({x.data(), n, DType::f32}, make_grid(DType::f32, 0, 0), frame));
    seal.add_frame(frame);
    parts.emplace_back(frame.begin(), frame.end());
  }
  const std::string head(header.begin(), header.end());
  const auto end = seal.bytes();
  const auto read = [&](const std::string& name, const std::vector<std::size_t>& order, std::size_t end_bytes) {
    std::string whole = head;
    for (const std::size_t f : order) whole += parts[f];
    LczReader in(make(name, whole + std::string(end.begin(), end.begin() + static_cast<std::ptrdiff_t>(end_bytes))));
    return code_of([&] {
      std::vector<std::uint8_t> frame;
      frame::Header of_frame;
      while (in.next(frame, of_frame)) {
      }
    });
  };
  EXPECT_EQ(read("good.lcz", {0, 1, 2}, end.size()), Exit::ok);
  for (const std::vector<std::size_t>& order : {std::vector<std::size_t>{1, 0, 2}, {0, 0, 2}, {0, 2, 1}, {0, 1, 1}})
    EXPECT_EQ(read("bad.lcz", order, end.size()), Exit::corrupt);
  EXPECT_EQ(read("short.lcz", {0, 1, 2}, end.size() - 1), Exit::corrupt);
  EXPECT_EQ(read("endless.lcz", {0, 1, 2}, 0), Exit::corrupt);
}

}  // namespace
}  // namespace laconic::app::io_test
