#include "runner/identity/elf_note.hpp"

#include <elf.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <optional>

#include "engine/abi.h"
#include "runner/record/error.hpp"

namespace kestrel {

namespace {

constexpr std::size_t most_program_headers = 128;       // real libraries have about a dozen; bounds the work on a hostile file
constexpr std::uint64_t largest_library = 4ULL << 30U;  // bytes; device code for many architectures stays far below

// A read-only file image in which nothing outside the file can be reached.
class Image {
  public:
    Image(std::string_view bytes, const std::string& origin) : bytes_(bytes), origin_(origin) {}

    [[noreturn]] void refuse(const std::string& why) const {
        throw Error(ExitCode::not_comparable, origin_ + " is not an engine library that can be compared: " + why);
    }

    [[nodiscard]] std::string_view range(std::uint64_t offset, std::uint64_t size, const char* what) const {
        if (offset > bytes_.size() || size > bytes_.size() - offset) refuse(std::string(what) + " lies outside the file");
        return bytes_.substr(offset, size);
    }

    // A copy, because a hostile file need not align its tables.
    template <typename Pod>
    [[nodiscard]] Pod at(std::uint64_t offset, const char* what) const {
        Pod value;
        std::memcpy(&value, range(offset, sizeof(Pod), what).data(), sizeof(Pod));
        return value;
    }

  private:
    std::string_view bytes_;
    const std::string& origin_;
};

std::vector<Elf64_Phdr> program_headers(const Image& image) {
    const auto header = image.at<Elf64_Ehdr>(0, "the ELF header");
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) image.refuse("no ELF file");
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB) {
        image.refuse("no 64-bit little-endian ELF file");
    }
    if (header.e_type != ET_DYN) image.refuse("no shared library");
    if (header.e_phentsize != sizeof(Elf64_Phdr)) image.refuse("program headers of unknown size");
    if (header.e_phnum > most_program_headers) image.refuse("more program headers than any library has");

    std::vector<Elf64_Phdr> headers(header.e_phnum);
    const std::string_view table = image.range(header.e_phoff, headers.size() * sizeof(Elf64_Phdr), "the program header table");
    if (!headers.empty()) std::memcpy(headers.data(), table.data(), table.size());
    return headers;
}

// Appends the descriptions of all kestrel notes in one PT_NOTE segment.
void collect_manifests(const Image& image, const Elf64_Phdr& segment, std::vector<std::string_view>& found) {
    constexpr std::string_view name(KESTREL_MANIFEST_NOTE_NAME, sizeof(KESTREL_MANIFEST_NOTE_NAME));  // with its null
    const std::uint64_t alignment = segment.p_align == 8 ? 8 : 4;
    const auto padded = [&](std::uint64_t size) { return (size + alignment - 1) / alignment * alignment; };
    const std::string_view notes = image.range(segment.p_offset, segment.p_filesz, "a note segment");

    for (std::uint64_t at = 0; notes.size() - at >= sizeof(Elf64_Nhdr);) {
        Elf64_Nhdr note;
        std::memcpy(&note, notes.data() + at, sizeof(note));
        const std::uint64_t description = at + padded(sizeof(note) + std::uint64_t{note.n_namesz});
        const std::uint64_t next = description + padded(note.n_descsz);
        if (description > notes.size() || note.n_descsz > notes.size() - description) image.refuse("a note is cut off");
        if (note.n_type == KESTREL_MANIFEST_NOTE_TYPE && notes.substr(at + sizeof(note), note.n_namesz) == name) {
            found.push_back(notes.substr(description, note.n_descsz));
        }
        at = std::min<std::uint64_t>(next, notes.size());
    }
}

// File offset of `size` bytes at a virtual address, through the segment that loads them.
std::uint64_t file_offset(const Image& image, const std::vector<Elf64_Phdr>& headers, std::uint64_t address, std::uint64_t size) {
    for (const Elf64_Phdr& segment : headers) {
        if (segment.p_type != PT_LOAD || address < segment.p_vaddr) continue;
        const std::uint64_t inside = address - segment.p_vaddr;
        if (inside <= segment.p_filesz && size <= segment.p_filesz - inside && inside <= UINT64_MAX - segment.p_offset) {
            return segment.p_offset + inside;
        }
    }
    image.refuse("a dynamic table points outside the loaded file");
}

void read_dynamic(const Image& image, const std::vector<Elf64_Phdr>& headers, const Elf64_Phdr& segment, EngineLibrary& out) {
    const std::string_view table = image.range(segment.p_offset, segment.p_filesz, "the dynamic table");
    std::vector<Elf64_Dyn> entries(table.size() / sizeof(Elf64_Dyn));
    if (!entries.empty()) std::memcpy(entries.data(), table.data(), entries.size() * sizeof(Elf64_Dyn));
    entries.erase(std::find_if(entries.begin(), entries.end(), [](const Elf64_Dyn& entry) { return entry.d_tag == DT_NULL; }),
                  entries.end());

    std::optional<std::uint64_t> address;
    std::uint64_t size = 0;
    for (const Elf64_Dyn& entry : entries) {
        if (entry.d_tag == DT_STRTAB) address = entry.d_un.d_ptr;
        if (entry.d_tag == DT_STRSZ) size = entry.d_un.d_val;
    }
    if (!address) image.refuse("no dynamic string table");
    const std::string_view strings = image.range(file_offset(image, headers, *address, size), size, "the dynamic string table");
    const auto text = [&](std::uint64_t offset) {
        const std::size_t end = offset < strings.size() ? strings.find('\0', offset) : std::string_view::npos;
        if (end == std::string_view::npos) image.refuse("a name lies outside the dynamic string table");
        return std::string(strings.substr(offset, end - offset));
    };
    for (const Elf64_Dyn& entry : entries) {
        if (entry.d_tag == DT_NEEDED) out.needed.push_back(text(entry.d_un.d_val));
        if (entry.d_tag == DT_SONAME) out.soname = text(entry.d_un.d_val);
        if (entry.d_tag == DT_RUNPATH || entry.d_tag == DT_RPATH) out.run_path = text(entry.d_un.d_val);
    }
}

// Libraries of the system, compiler runtime or driver; "libm" stands for "libm.so.6" and any other version.
bool is_system_library(std::string_view name) {
    constexpr std::array<std::string_view, 14> known{"libc",      "libm",    "libdl",   "librt",    "libpthread", "libmvec", "libgcc_s",
                                                     "libstdc++", "libgomp", "libasan", "libubsan", "libtsan",    "liblsan", "libcuda"};
    if (name.starts_with("ld-linux") && name.find('/') == std::string_view::npos) return true;
    return std::any_of(known.begin(), known.end(), [&](std::string_view stem) {
        return name.starts_with(stem) && name.substr(stem.size()).starts_with(".so") && name.find('/') == std::string_view::npos;
    });
}

}  // namespace

EngineLibrary parse_engine_library(std::string_view bytes, const std::string& origin) {
    const Image image(bytes, origin);
    const std::vector<Elf64_Phdr> headers = program_headers(image);
    EngineLibrary library;
    std::vector<std::string_view> manifests;
    bool dynamic = false;
    for (const Elf64_Phdr& segment : headers) {
        if (segment.p_type == PT_NOTE) collect_manifests(image, segment, manifests);
        if (segment.p_type != PT_DYNAMIC) continue;
        if (dynamic) image.refuse("two dynamic tables");
        dynamic = true;
        read_dynamic(image, headers, segment, library);
    }
    if (!dynamic) image.refuse("no dynamic table");
    if (manifests.empty()) {
        image.refuse("it carries no manifest (section " KESTREL_MANIFEST_SECTION
                     "). Build it with kestrel_engine_variant() in engine/variant.cmake");
    }
    if (manifests.size() > 1) image.refuse("it carries " + std::to_string(manifests.size()) + " manifests");
    library.manifest_json = manifests.front();
    return library;
}

EngineLibrary read_engine_library(const std::filesystem::path& path, const std::string& origin) {
    std::error_code error;
    const std::uintmax_t size = std::filesystem::file_size(path, error);  // an error for directories and devices
    if (error) throw Error(ExitCode::usage, "cannot read the engine library " + path.string() + ": " + error.message());
    if (size > largest_library) throw Error(ExitCode::usage, path.string() + " is larger than 4 GiB, which no engine library is");
    std::ifstream in(path, std::ios::binary);
    std::string bytes(size, '\0');
    if (!in.read(bytes.data(), static_cast<std::streamsize>(size))) {
        throw Error(ExitCode::usage, "cannot read the engine library " + path.string() + " to its end");
    }
    return parse_engine_library(bytes, origin.empty() ? path.string() : origin);
}

void require_self_contained(const EngineLibrary& library, const std::string& origin) {
    std::string wrong;
    for (const std::string& name : library.needed) {
        if (!is_system_library(name)) wrong += "\n  needs " + name;
    }
    // Colons alone are room that a build system left for a later path.
    if (library.run_path.find_first_not_of(':') != std::string::npos) wrong += "\n  searches for libraries in " + library.run_path;
    if (wrong.empty()) return;
    throw Error(ExitCode::not_comparable, origin + " is not self-contained, so its SHA-256 would not identify the code that runs:" + wrong +
                                              "\nLink all engine code into the one library, statically, without a run path.");
}

}  // namespace kestrel
