// Whole small models, as a GGUF file or a Hugging Face directory: opened, bound to the shapes that they claim, and loaded. The first byte
// of an input chooses format and weights, the rest are changes to a valid model (model_changes.hpp).
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>

#include "engine/error.hpp"
#include "engine/file_model.hpp"
#include "engine/tensor_check.hpp"
#include "tests/fuzz/model_changes.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* input, std::size_t size);

namespace kestrel::fuzz {
namespace {

// A file in memory that has a path.
class MemoryFile {
  public:
    MemoryFile() : fd_(::memfd_create("model", MFD_CLOEXEC)) {
        if (fd_ < 0) std::abort();
    }
    MemoryFile(const MemoryFile&) = delete;
    MemoryFile& operator=(const MemoryFile&) = delete;
    ~MemoryFile() { ::close(fd_); }
    void write(const std::string& bytes) const {
        if (::ftruncate(fd_, 0) != 0 || ::pwrite(fd_, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) std::abort();
    }
    [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

  private:
    int fd_;
};

// A directory whose two files lie in memory.
class Directory {
  public:
    Directory() {
        std::string name = (std::filesystem::temp_directory_path() / "kestrel-fuzz-XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) std::abort();
        path_ = name;
        std::filesystem::create_symlink(config.path(), path_ / "config.json");
        std::filesystem::create_symlink(tensors.path(), path_ / "model.safetensors");
    }
    Directory(const Directory&) = delete;
    Directory& operator=(const Directory&) = delete;
    ~Directory() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    [[nodiscard]] const std::filesystem::path& path() const { return path_; }
    MemoryFile config;
    MemoryFile tensors;

  private:
    std::filesystem::path path_;
};

// What a model may promise once it was accepted.
void load(const ModelSource& source, WeightFormat format, std::size_t file_bytes) {
    const WeightLayout layout = layout_of(source, format);
    // Nobody allocates what a file merely claims: no type takes less than an eighth of what f32 takes.
    if (layout.bytes() > 8 * file_bytes + 64 * layout.tensors().size()) __builtin_trap();
    const auto block = std::make_unique<std::byte[]>(layout.bytes());
    source.load(layout, 1, block.get());
    for (const TensorSpec& tensor : layout.tensors()) {
        if (first_not_finite(tensor.type, block.get() + tensor.offset, tensor.elements())) __builtin_trap();
    }
}

// Refusals must name the file; a model that nothing was changed in must not be refused.
template <class Open>
void attempt(const std::string& where, std::size_t file_bytes, WeightFormat format, bool changed, const Open& open) {
    try {
        load(*open(), format, file_bytes);
    } catch (const EngineError& refusal) {
        if (!changed || std::strstr(refusal.what(), where.c_str()) == nullptr) __builtin_trap();
    }
}

void run_gguf(std::span<const Change> changes, WeightFormat format) {
    static const test::TinyGguf valid;
    static const MemoryFile file;
    test::TinyGguf model = valid;
    change_model(model, changes);
    std::string bytes = model.bytes();
    for (const Change& change : changes) change_bytes(bytes, change);
    file.write(bytes);
    attempt(file.path(), bytes.size(), format, !changes.empty(), [] { return open_gguf(file.path()); });
}

void run_hf(std::span<const Change> changes, WeightFormat format) {
    static const test::TinyHf valid;
    static const Directory directory;
    test::TinyHf model = valid;
    change_model(model, changes);
    std::string config = model.config.dump();
    std::string tensors = model.safetensors(0, model.entries.size());
    for (const Change& change : changes) change_bytes(change.which % 2 == 0 ? tensors : config, change);
    directory.config.write(config);
    directory.tensors.write(tensors);
    attempt(directory.path().string(), tensors.size(), format, !changes.empty(), [] { return open_hf(directory.path()); });
}

}  // namespace
}  // namespace kestrel::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* input, std::size_t size) {
    using namespace kestrel;
    if (size == 0) return 0;
    const std::vector<fuzz::Change> changes = fuzz::read_changes({input + 1, size - 1});
    const WeightFormat format = (input[0] & 2U) != 0 ? WeightFormat::q4_0 : WeightFormat::stored;
    if ((input[0] & 1U) != 0) {
        fuzz::run_hf(changes, format);
    } else {
        fuzz::run_gguf(changes, format);
    }
    return 0;
}
