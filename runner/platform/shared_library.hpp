// A loaded library. Never unloaded: a library that registered device code or thread-local destructors cannot be unmapped safely,
// and workers leave with _exit anyway.
#pragma once

#include <cstdint>
#include <string>

namespace kestrel::platform {

class SharedLibrary {
  public:
    // Loads by absolute path, or by name where the system's own libraries are, all symbols resolved now and none offered to others. Throws
    // Error(invalid) with the loader's text.
    explicit SharedLibrary(const std::string& path);

    // Address of an exported symbol; throws Error(invalid) naming library and symbol.
    [[nodiscard]] void* symbol(const char* name) const;

    // The same, or null if there is no such symbol.
    [[nodiscard]] void* find(const char* name) const;

    // Where the loader put it: two arms must differ, or one code would be measured twice under two names.
    [[nodiscard]] std::uintptr_t load_address() const;

    [[nodiscard]] const std::string& path() const { return path_; }

  private:
    std::string path_;
    void* handle_ = nullptr;
};

}  // namespace kestrel::platform
