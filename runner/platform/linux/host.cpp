#include "runner/platform/host.hpp"

#include <sched.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "runner/record/error.hpp"

namespace kestrel::platform {
namespace {

std::string trimmed(const std::string& text) {
    const auto first = text.find_first_not_of(" \t\n");
    if (first == std::string::npos) return {};
    return text.substr(first, text.find_last_not_of(" \t\n") - first + 1);
}

std::string cpu_field(const std::string& wanted) {
    std::ifstream in("/proc/cpuinfo");
    std::string line;
    while (std::getline(in, line)) {
        const auto colon = line.find(':');
        if (colon != std::string::npos && trimmed(line.substr(0, colon)) == wanted) return trimmed(line.substr(colon + 1));
    }
    return "unknown";
}

std::string file_or_absent(const std::string& path) {
    const auto text = read_small_file(path);
    return text ? trimmed(*text) : "not readable";
}

}  // namespace

std::string executable_path() {
    std::array<char, 4096> path{};
    const ssize_t n = ::readlink("/proc/self/exe", path.data(), path.size() - 1);
    if (n <= 0) throw Error(ExitCode::invalid, "cannot read /proc/self/exe; is /proc mounted?");
    return {path.data(), static_cast<std::size_t>(n)};
}

std::string host_name() {
    std::array<char, 256> name{};
    return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

std::string user_state_directory() {
    if (const char* state = std::getenv("XDG_STATE_HOME"); state != nullptr && *state == '/') return state;
    if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0') return std::string(home) + "/.local/state";
    throw Error(ExitCode::usage, "neither XDG_STATE_HOME nor HOME is set; name the database with --db FILE");
}

std::map<std::string, std::string> environment_facts() {
    utsname system{};
    ::uname(&system);
    std::map<std::string, std::string> facts;
    facts["host"] = host_name();
    facts["cpu.model"] = cpu_field("model name");
    facts["cpu.microcode"] = cpu_field("microcode");
    facts["cpu.usable"] = std::to_string(usable_cpus());
    facts["cpu.governor"] = file_or_absent("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
    facts["cpu.smt"] = file_or_absent("/sys/devices/system/cpu/smt/control");
    facts["memory.transparent_hugepages"] = file_or_absent("/sys/kernel/mm/transparent_hugepage/enabled");
    facts["kernel"] = std::string(system.sysname) + " " + system.release;
    facts["kernel.aslr"] = file_or_absent("/proc/sys/kernel/randomize_va_space");
#ifdef _CS_GNU_LIBC_VERSION
    std::array<char, 64> libc{};
    if (::confstr(_CS_GNU_LIBC_VERSION, libc.data(), libc.size()) > 0) facts["libc"] = libc.data();
#endif
    return facts;
}

std::string cpu_device_name() {
    return "cpu: " + cpu_field("model name") + ", " + std::to_string(usable_cpus()) + " threads";
}

int usable_cpus() {
    cpu_set_t set;
    CPU_ZERO(&set);
    return ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

double load_average() {
    std::array<double, 1> load{};
    return ::getloadavg(load.data(), 1) == 1 ? load[0] : -1.0;
}

std::optional<std::string> read_small_file(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    if (!in) return std::nullopt;
    std::ostringstream text;
    text << in.rdbuf();
    if (in.bad()) return std::nullopt;
    return text.str();
}

HostMemory::HostMemory(std::size_t bytes) : bytes_(bytes) {
    data_ = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data_ == MAP_FAILED) {
        throw Error(ExitCode::invalid, "cannot get " + std::to_string(bytes) + " bytes of memory for the arms; choose a smaller model");
    }
}

HostMemory::~HostMemory() {
    ::munmap(data_, bytes_);
}

}  // namespace kestrel::platform
