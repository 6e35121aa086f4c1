#include "engine/memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>

#include "engine/error.hpp"

namespace kestrel {
namespace {

constexpr std::uint64_t unknown = std::numeric_limits<std::uint64_t>::max();
// Large pages where the system gives them: decoding walks through all weights and states, far more than small pages' address cache holds,
// and the scatter of small pages differs from process to process.
constexpr std::size_t own_alignment = std::size_t{2} << 20;

std::uint64_t number_in(const char* file) {
    std::ifstream in(file);
    std::uint64_t value = unknown;
    return in >> value ? value : unknown;  // "max" means no limit
}

std::uint64_t machine_available() {
    std::ifstream in("/proc/meminfo");
    std::string key;
    std::uint64_t kibibytes = 0;
    while (in >> key >> kibibytes) {
        if (key == "MemAvailable:") return kibibytes * 1024;
        in.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
    }
    return unknown;
}

// A container's limit, which the machine's figure does not know.
std::uint64_t container_available() {
    const std::uint64_t limit = number_in("/sys/fs/cgroup/memory.max");
    const std::uint64_t used = number_in("/sys/fs/cgroup/memory.current");
    if (limit == unknown || used == unknown) return unknown;
    return limit > used ? limit - used : 0;
}

}  // namespace

std::uint64_t available_memory() {
    return std::min(machine_available(), container_available());
}

MemoryBlock MemoryBlock::allocate(std::uint64_t bytes, const std::string& purpose) {
    const std::uint64_t available = available_memory();
    const auto refuse = [&] {
        fail(KESTREL_OUT_OF_MEMORY, purpose + ": needs " + std::to_string(bytes) + " bytes, " +
                                        (available == unknown ? "more than there are" : std::to_string(available) + " are available") +
                                        "; use a smaller model, fewer positions or a larger machine");
    };
    if (bytes > available || bytes > PTRDIFF_MAX - own_alignment) refuse();
    const std::size_t rounded = (bytes + own_alignment - 1) / own_alignment * own_alignment;
    void* memory = std::aligned_alloc(own_alignment, rounded);
    if (memory == nullptr) refuse();
    MemoryBlock block = own(memory, std::free);
    (void)::madvise(block.data_, rounded, MADV_HUGEPAGE);  // a wish
    std::memset(block.data_, 0, rounded);
    return block;
}

MemoryBlock MemoryBlock::own(void* memory, Release release) {
    MemoryBlock block;
    block.owned_ = {memory, release};
    block.data_ = static_cast<std::byte*>(memory);
    return block;
}

MemoryBlock MemoryBlock::lend(void* memory, std::size_t bytes, std::uint64_t needed, std::size_t alignment, const std::string& purpose) {
    if (bytes < needed) {
        bad_argument(purpose + ": " + std::to_string(bytes) + " bytes lent, " + std::to_string(needed) + " needed");
    }
    if (reinterpret_cast<std::uintptr_t>(memory) % alignment != 0) {
        bad_argument(purpose + ": lent memory must be aligned to " + std::to_string(alignment) + " bytes");
    }
    MemoryBlock block;
    block.data_ = static_cast<std::byte*>(memory);
    return block;
}

}  // namespace kestrel
