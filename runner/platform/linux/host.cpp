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

constexpr std::size_t large_page_bytes = 2 * 1024 * 1024;  // of x86-64 and, with 4 KiB base pages, of AArch64

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

// Time that all cores together did not idle, in clock ticks: the first line of /proc/stat is "cpu user nice system idle iowait irq softirq
// steal ...", see proc(5).
std::optional<std::int64_t> busy_ticks() {
    std::ifstream in("/proc/stat");
    std::string label;
    std::array<std::int64_t, 8> ticks{};
    in >> label;
    for (std::int64_t& one : ticks) in >> one;
    if (!in || label != "cpu") return std::nullopt;
    return ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6] + ticks[7];
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

std::optional<double> busy_cores(int interval_ms) {
    const auto before = busy_ticks();
    ::usleep(static_cast<useconds_t>(interval_ms) * 1000);
    const auto after = busy_ticks();
    if (!before || !after) return std::nullopt;
    const double seconds = static_cast<double>(*after - *before) / static_cast<double>(::sysconf(_SC_CLK_TCK));
    return seconds * 1000.0 / interval_ms;
}

std::optional<std::string> read_small_file(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    if (!in) return std::nullopt;
    std::ostringstream text;
    text << in.rdbuf();
    if (in.bad()) return std::nullopt;
    return text.str();
}

HostMemory::HostMemory(std::size_t bytes) : bytes_(bytes), mapped_bytes_(bytes + large_page_bytes) {
    mapped_ = ::mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped_ == MAP_FAILED) {
        throw Error(ExitCode::invalid, "cannot get " + std::to_string(bytes) + " bytes of memory for the arms; choose a smaller model");
    }
    const auto start = reinterpret_cast<std::uintptr_t>(mapped_);
    data_ = static_cast<std::byte*>(mapped_) + (large_page_bytes - start % large_page_bytes) % large_page_bytes;
    // Advice only: without large pages the physical pages of a replicate are one more draw, not an error.
    (void)::madvise(data_, bytes_, MADV_HUGEPAGE);
}

HostMemory::~HostMemory() {
    ::munmap(mapped_, mapped_bytes_);
}

}  // namespace kestrel::platform
