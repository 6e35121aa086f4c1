// Small engine libraries and manifests made of bytes, for the identity tests.
#pragma once

#include <elf.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "engine/abi.h"
#include "runner/identity/manifest.hpp"

namespace identity_test {

// A folder of its own, removed with everything in it.
class ScratchFolder {
  public:
    ScratchFolder() {
        static std::atomic<int> count{0};
        path_ = std::filesystem::temp_directory_path() /
                ("kestrel-identity-" + std::to_string(::getpid()) + "-" + std::to_string(count.fetch_add(1)));
        std::filesystem::create_directories(path_);
    }
    ScratchFolder(const ScratchFolder&) = delete;
    ScratchFolder& operator=(const ScratchFolder&) = delete;
    ~ScratchFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    [[nodiscard]] std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

  private:
    std::filesystem::path path_;
};

inline void write_file(const std::filesystem::path& path, std::string_view bytes) {
    std::ofstream out(path, std::ios::binary | std::ios::trunc);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

template <typename Pod>
void put(std::string& bytes, std::size_t at, const Pod& value) {
    if (bytes.size() < at + sizeof(Pod)) bytes.resize(at + sizeof(Pod), '\0');
    std::memcpy(bytes.data() + at, &value, sizeof(Pod));
}

inline std::string note(std::string_view name_with_null, std::uint32_t type, std::string_view description) {
    std::string bytes;
    put(bytes, 0, Elf64_Nhdr{static_cast<Elf64_Word>(name_with_null.size()), static_cast<Elf64_Word>(description.size()), type});
    const auto append_padded = [&](std::string_view part) {
        bytes += part;
        bytes.resize((bytes.size() + 3) / 4 * 4, '\0');
    };
    append_padded(name_with_null);
    append_padded(description);
    return bytes;
}

inline std::string manifest_note(std::string_view json) {
    return note({KESTREL_MANIFEST_NOTE_NAME, sizeof(KESTREL_MANIFEST_NOTE_NAME)}, KESTREL_MANIFEST_NOTE_TYPE, json);
}

// A shared library's headers around `notes`: one loaded segment (file offset 0, address 0x1000), one dynamic table, one note
// segment. It has no code; only what the reader looks at.
inline std::string tiny_library(const std::string& notes, const std::vector<std::string>& needed, const std::string& run_path = "") {
    constexpr std::size_t header_bytes = sizeof(Elf64_Ehdr) + 3 * sizeof(Elf64_Phdr);
    constexpr Elf64_Addr load_address = 0x1000;
    std::string strings(1, '\0');
    const auto name = [&](const std::string& text) {
        const std::size_t at = strings.size();
        strings += text + '\0';
        return static_cast<Elf64_Xword>(at);
    };
    std::vector<Elf64_Dyn> dynamic;
    const auto entry = [&](Elf64_Sxword tag, Elf64_Xword value) {
        Elf64_Dyn dyn{};
        dyn.d_tag = tag;
        dyn.d_un.d_val = value;
        dynamic.push_back(dyn);
    };
    for (const std::string& library : needed) entry(DT_NEEDED, name(library));
    entry(DT_SONAME, name("libkestrel_cpu.so"));
    if (!run_path.empty()) entry(DT_RUNPATH, name(run_path));
    const std::size_t dynamic_at = (header_bytes + notes.size() + 7) / 8 * 8;
    const std::size_t strings_at = dynamic_at + (dynamic.size() + 3) * sizeof(Elf64_Dyn);
    entry(DT_STRTAB, load_address + strings_at);
    entry(DT_STRSZ, strings.size());
    entry(DT_NULL, 0);

    std::string bytes(strings_at, '\0');
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_type = ET_DYN;
    header.e_phoff = sizeof(Elf64_Ehdr);
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = 3;
    put(bytes, 0, header);
    const std::size_t total = strings_at + strings.size();
    const auto segment = [&](std::size_t index, Elf64_Word type, std::size_t offset, std::size_t size) {
        Elf64_Phdr program{};
        program.p_type = type;
        program.p_offset = offset;
        program.p_vaddr = load_address + offset;
        program.p_filesz = size;
        program.p_align = 4;
        put(bytes, sizeof(Elf64_Ehdr) + index * sizeof(Elf64_Phdr), program);
    };
    segment(0, PT_LOAD, 0, total);
    segment(1, PT_DYNAMIC, dynamic_at, dynamic.size() * sizeof(Elf64_Dyn));
    segment(2, PT_NOTE, header_bytes, notes.size());
    std::memcpy(bytes.data() + header_bytes, notes.data(), notes.size());
    for (std::size_t i = 0; i < dynamic.size(); ++i) put(bytes, dynamic_at + i * sizeof(Elf64_Dyn), dynamic[i]);
    return bytes + strings;
}

inline std::string hash(char digit) {
    return std::string(64, digit);
}

inline const std::string small_manifest_json = R"({"format":1,"engine":"kestrel_cpu","target":"x86_64",
 "units":[{"source":"engine/cpu/ops.cpp","argv":["c++","-O3","-c","./engine/cpu/ops.cpp"],"object_sha256":")" +
                                               hash('1') + R"("}],"files":{"engine/cpu/ops.cpp":")" + hash('2') +
                                               R"("},"link":{"argv":["c++","-shared"],"inputs":{"/usr/lib/libgcc.a":")" + hash('3') +
                                               R"("}},"tools":{"c++":{"version":"c++ 12","sha256":")" + hash('4') + R"("}}})";

// Two units that share a header.
inline kestrel::Manifest two_units() {
    kestrel::Manifest manifest;
    manifest.engine = "kestrel_cpu";
    manifest.target = "x86_64";
    manifest.units = {{"engine/a.cpp", {"c++", "-I.", "-O3", "-DNDEBUG", "-std=c++20", "-c", "./engine/a.cpp"}, hash('a')},
                      {"engine/b.cpp", {"c++", "-I.", "-O3", "-DNDEBUG", "-std=c++20", "-c", "./engine/b.cpp"}, hash('b')}};
    manifest.files = {
        {"engine/a.cpp", hash('1')}, {"engine/b.cpp", hash('2')}, {"engine/c.hpp", hash('3')}, {"/usr/include/x.h", hash('4')}};
    manifest.link_argv = {"c++", "-shared", "-Wl,-z,now"};
    manifest.link_inputs = {{"/usr/lib/libgcc.a", hash('5')}, {"engine/exports.map", hash('6')}};
    manifest.tools = {{"c++", {"c++ 12.2.0", hash('7')}}, {"ld", {"ld 2.40", hash('8')}}};
    return manifest;
}

}  // namespace identity_test
