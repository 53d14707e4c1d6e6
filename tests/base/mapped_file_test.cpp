#include "syncopate/base/mapped_file.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "syncopate/base/error.h"
#include "syncopate/base/standard_error.h"
#include "tests/support/fixtures.h"
#include "tests/support/support.h"

namespace syncopate {
namespace {

constexpr size_t kSize = size_t{1} << 16;

class Mapped : public testing::Test {
 protected:
  Mapped() {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    test::write_text(path_, std::string(kSize, 'x'));
  }
  /// The last byte, of a file that ends before it.
  static char read_what_is_gone(const std::filesystem::path& path, std::string_view bytes) {
    std::filesystem::resize_file(path, 10);
    return *const_cast<const volatile char*>(&bytes.back());
  }
  test::TempDir folder_;
  const std::filesystem::path path_ = folder_ / "x";
};

TEST_F(Mapped, FileThatIsCutShortIsASentence) {
  const auto read = [&] {
    const MappedFile file(path_, "text");
    read_what_is_gone(path_, file.bytes());
  };
  EXPECT_EXIT(read(), testing::ExitedWithCode(3), "/x was cut short while it was read; start again");
  test::write_text(path_, std::string(kSize, 'x'));
  const auto say = [](const std::string& sentence) {
    tell("first {}", sentence);
    std::_Exit(9);
  };
  const auto read_and_say = [&] {
    when_cut_short(say);
    read();
  };
  EXPECT_EXIT(read_and_say(), testing::ExitedWithCode(9), "first .*/x was cut short");
}

TEST_F(Mapped, OtherBusErrorsAreAsBefore) {
  const auto read = [&] {
    std::signal(SIGBUS, [](int) { std::_Exit(7); });
    const MappedFile ours(path_, "text");
    test::write_text(folder_ / "y", std::string(kSize, 'y'));
    std::FILE* const other = std::fopen((folder_ / "y").c_str(), "r");
    const void* const bytes = ::mmap(nullptr, kSize, PROT_READ, MAP_PRIVATE, ::fileno(other), 0);
    read_what_is_gone(folder_ / "y", {static_cast<const char*>(bytes), kSize});
  };
  EXPECT_EXIT(read(), testing::ExitedWithCode(7), "");
}

TEST_F(Mapped, KnowsThatItWasWrittenTo) {
  const MappedFile file(path_, "text");
  EXPECT_NO_THROW(file.require_unchanged());
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // for another time of writing
  std::filesystem::rename(path_, folder_ / "y");
  test::write_text(path_, "another file");
  EXPECT_NO_THROW(file.require_unchanged()) << "what was mapped is as it was";
  std::fstream(folder_ / "y", std::ios::in | std::ios::out) << "z";
  EXPECT_EQ(test::sentence<DataError>([&] { file.require_unchanged(); }),
            path_.string() + " was changed while it was read; start again when it is whole");
}

}  // namespace
}  // namespace syncopate
