#include "runner/platform/shared_library.hpp"

#include <dlfcn.h>
#include <link.h>

#include "runner/record/error.hpp"

namespace kestrel::platform {

SharedLibrary::SharedLibrary(const std::string& path) : path_(path) {
    handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ == nullptr) {
        const char* why = dlerror();
        throw Error(ExitCode::invalid, "cannot load " + path + ": " + (why != nullptr ? why : "unknown reason") +
                                           "; build or install it for this machine, or check the libraries it needs with ldd");
    }
}

void* SharedLibrary::symbol(const char* name) const {
    void* address = dlsym(handle_, name);
    if (address == nullptr) {
        throw Error(ExitCode::not_comparable, path_ + " does not export " + name + "; it is not an engine (engine/abi.h describes one)");
    }
    return address;
}

void* SharedLibrary::find(const char* name) const {
    return dlsym(handle_, name);
}

std::uintptr_t SharedLibrary::load_address() const {
    link_map* map = nullptr;
    if (dlinfo(handle_, RTLD_DI_LINKMAP, static_cast<void*>(&map)) != 0 || map == nullptr) {
        throw Error(ExitCode::invalid, "the loader does not say where it put " + path_);
    }
    return static_cast<std::uintptr_t>(map->l_addr);
}

}  // namespace kestrel::platform
