// Memory of an engine: its own, or lent by the caller.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace kestrel {

inline constexpr std::size_t memory_alignment = 64;

// Bytes the machine can give without swapping or killing, as far as the system says; the largest number if it does not.
[[nodiscard]] std::uint64_t available_memory();

// A block that is owned and freed, or lent and left alone.
class MemoryBlock {
  public:
    using Release = void (*)(void* memory);

    MemoryBlock() = default;

    // Host memory, zeroed, aligned to memory_alignment. Throws EngineError (KESTREL_OUT_OF_MEMORY) naming bytes needed and available,
    // before touching the memory.
    static MemoryBlock allocate(std::uint64_t bytes, const std::string& purpose);
    // Memory of any kind, to be given back with `release`, which does not throw.
    static MemoryBlock own(void* memory, Release release);
    // Throws EngineError (KESTREL_BAD_ARGUMENT) if it is too small or not aligned to `alignment` bytes.
    static MemoryBlock lend(void* memory, std::size_t bytes, std::uint64_t needed, std::size_t alignment, const std::string& purpose);

    [[nodiscard]] std::byte* data() const noexcept { return data_; }

  private:
    std::unique_ptr<void, Release> owned_{nullptr, nullptr};
    std::byte* data_ = nullptr;
};

}  // namespace kestrel
