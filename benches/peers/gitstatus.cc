// Reads a sorted directory in the same way as the last step (v5) of
// https://github.com/romkatv/gitstatus/blob/master/docs/listdir.md, written from scratch.
// src/programs.rs describes standard input and output.
#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace {

bool is_dots(const char* name) { return !std::strcmp(name, ".") || !std::strcmp(name, ".."); }

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

// A sorted listing. The names stay where the kernel wrote them. During the sort, the first 8 bytes of
// a name are a number.
struct Listing {
  static constexpr size_t block_size = 8192;
  // Longer than a name, so 8 bytes can be read even at the end of the last name.
  static constexpr size_t slack = 256;

  std::vector<std::unique_ptr<char[]>> blocks;
  std::vector<char*> names;

  static uint64_t word(const char* name) {
    uint64_t word;
    std::memcpy(&word, name, sizeof word);
    return word;
  }

  static void turn(char* name) {
    const uint64_t turned = __builtin_bswap64(word(name));
    std::memcpy(name, &turned, sizeof turned);
  }

  // Bytes after the NUL never decide, because no two names are equal: they differ at the NUL or before.
  static bool before(const char* a, const char* b) {
    const uint64_t x = word(a), y = word(b);
    return x != y ? x < y : a != b && std::strcmp(a + 8, b + 8) < 0;
  }

  void read(const char* path) {
    names.clear();
    const int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0) fail("open");
    for (size_t used = 0;; ++used) {
      if (used == blocks.size()) blocks.push_back(std::make_unique<char[]>(block_size));
      char* const block = blocks[used].get();
      const long bytes = syscall(SYS_getdents64, dir, block, block_size - slack);
      if (bytes < 0) fail("getdents64");
      if (bytes == 0) break;
      for (long at = 0; at < bytes;) {
        dirent64* const entry = reinterpret_cast<dirent64*>(block + at);
        at += entry->d_reclen;
        if (is_dots(entry->d_name)) continue;
        turn(entry->d_name);
        names.push_back(entry->d_name);
      }
    }
    close(dir);
    std::sort(names.begin(), names.end(), before);
    for (char* name : names) turn(name);
  }
};

}  // namespace

int main(int count, char** arguments) {
  const std::vector<const char*> paths(arguments + 1, arguments + count);
  Listing listing;
  size_t turn;
  for (unsigned long times; std::scanf("%lu %zu", &times, &turn) == 2; std::fflush(stdout)) {
    if (times == 0) {
      listing.read(paths[turn]);
      std::string names;
      for (const char* name : listing.names) names.append(name).push_back('\0');
      std::printf("%zu\n", names.size());
      std::fwrite(names.data(), 1, names.size(), stdout);
      continue;
    }
    size_t bytes = 0;
    const auto begin = std::chrono::steady_clock::now();
    for (; times > 0; --times) {
      listing.read(paths[turn]);
      if (++turn == paths.size()) turn = 0;
      bytes = 0;
      for (const char* name : listing.names) bytes += std::strlen(name);
    }
    const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - begin;
    std::printf("%lld %zu\n", static_cast<long long>(took.count()), bytes);
  }
}
