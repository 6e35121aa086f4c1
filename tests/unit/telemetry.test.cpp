// Readings: of the machine's counters, and of a GPU that answers, fails or hangs.
#include "runner/telemetry/telemetry.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "runner/stats/telemetry_guards.hpp"
#include "runner/stats/telemetry_summary.hpp"

using namespace kestrel;
using namespace kestrel::telemetry;
using namespace std::chrono_literals;

namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* device = "cuda: Example GPU, UUID 0123456789abcdef0123456789abcdef, driver API 13.0";

// A made-up /proc and /sys.
struct Tree {
    std::filesystem::path root;
    Tree() {
        std::string name = (std::filesystem::temp_directory_path() / "kestrel-counters-XXXXXX").string();
        REQUIRE(mkdtemp(name.data()) != nullptr);
        root = name;
    }
    ~Tree() { std::filesystem::remove_all(root); }
    Tree(const Tree&) = delete;
    Tree& operator=(const Tree&) = delete;
    void write(const std::string& path, const std::string& text) const {
        std::filesystem::create_directories((root / path).parent_path());
        std::ofstream(root / path, std::ios::trunc) << text;
    }
    void write_for_cpus(const std::string& path, double first, double step) const {
        for (int cpu = 0; cpu < 256; ++cpu) {
            write("sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/" + path, std::to_string(first + step * cpu) + "\n");
        }
    }
};

std::string library(const std::string& behaviour) {
    return std::string(KESTREL_LIB_DIR) + "/test/libfake_nvml_" + behaviour + ".so";
}

GpuSettings settings_for(const std::string& behaviour) {
    return {"GPU-01234567-89ab-cdef-0123-456789abcdef", library(behaviour), 10s, 10s};
}

// A child that does `work` and is gone with this object.
struct Child {
    pid_t pid;
    template <typename Work>
    explicit Child(Work work) : pid(fork()) {
        if (pid == 0) {
            work();
            _exit(0);
        }
    }
    ~Child() {
        ::kill(pid, SIGKILL);
        ::waitpid(pid, nullptr, 0);
    }
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;
};

void wait_forever() {
    for (;;) ::pause();
}

void keep_busy() {
    for (volatile unsigned i = 0;;) i = i + 1;
}

}  // namespace

TEST_CASE("counters: values as the kernel writes them", "[telemetry]") {
    const Tree tree;
    tree.write("proc/stat", "cpu  100 20 30 4000 50 6 7 80 9 1\ncpu0 1 2 3 4 5 6 7 8 9 0\n");
    tree.write("proc/pressure/cpu",
               "some avg10=1.00 avg60=2.00 avg300=3.00 total=2500000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n");
    tree.write_for_cpus("cpufreq/scaling_cur_freq", 2'000'000, 0);
    tree.write_for_cpus("thermal_throttle/core_throttle_count", 0, 0);
    const platform::HostCounters counters(tree.root.string());
    const double tick = 1.0 / static_cast<double>(sysconf(_SC_CLK_TCK));
    REQUIRE(counters.cpu_times());
    CHECK(counters.cpu_times()->busy_s == Approx((100 + 20 + 30 + 6 + 7) * tick));  // neither idle nor iowait, guest is in user
    CHECK(counters.cpu_times()->steal_s == Approx(80 * tick));
    CHECK(counters.pressure_s() == 2.5);
    CHECK(counters.mean_frequency_mhz() == 2000.0);
    CHECK(counters.throttle_count() == 0.0);
    // The files stay open and are read anew.
    tree.write_for_cpus("cpufreq/scaling_cur_freq", 1'500'000, 0);
    CHECK(counters.mean_frequency_mhz() == 1500.0);
}

TEST_CASE("counters: what is absent or no number is not checked", "[telemetry]") {
    const Tree tree;
    const platform::HostCounters none(tree.root.string());
    CHECK_FALSE(none.cpu_times());
    CHECK_FALSE(none.pressure_s());
    CHECK_FALSE(none.mean_frequency_mhz());
    CHECK_FALSE(none.throttle_count());
    tree.write("proc/stat", "cpu  100 20 30\n");
    tree.write("proc/pressure/cpu", "some avg10=1.00\n");
    tree.write_for_cpus("cpufreq/scaling_cur_freq", 2'000'000, 0);
    for (int cpu = 0; cpu < 256; ++cpu) tree.write("sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/cpufreq/scaling_cur_freq", "?\n");
    const platform::HostCounters damaged(tree.root.string());
    CHECK_FALSE(damaged.cpu_times());
    CHECK_FALSE(damaged.pressure_s());
    CHECK_FALSE(damaged.mean_frequency_mhz());
    CHECK_FALSE(platform::process_cpu_s(0));
    pid_t gone = 0;
    {
        const Child child(wait_forever);
        gone = child.pid;
        CHECK(platform::process_cpu_s(gone));
    }
    CHECK_FALSE(platform::process_cpu_s(gone));
}

TEST_CASE("gpu_uuid: from the device's text", "[telemetry]") {
    CHECK(gpu_uuid(device) == "GPU-01234567-89ab-cdef-0123-456789abcdef");
    CHECK_FALSE(gpu_uuid("cpu: Example, UUID 0123456789abcdef0123456789abcdef"));
    CHECK_FALSE(gpu_uuid("cuda: Example GPU, UUID 0123456789abcdef"));
    CHECK_FALSE(gpu_uuid("cuda: Example GPU, UUID 0123456789ABCDEF0123456789abcdef, driver"));
    CHECK_FALSE(gpu_uuid("cuda: Example GPU"));
}

TEST_CASE("a GPU that answers is read again and again", "[telemetry]") {
    GpuSource gpu(settings_for("good"));
    const auto values = gpu.read(::getpid());
    INFO(gpu.problem());
    REQUIRE(values);
    CHECK(*values == Values{{"ecc_corrected", 7},
                            {"ecc_uncorrected", 0},
                            {"memory_mhz", 2619},
                            {"other_pid.0", 4343},
                            {"other_processes", 1},
                            {"power_w", 305.5},
                            {"processes", 2},
                            {"sm_mhz", 1980},
                            {"temperature_c", 45},
                            {"throttle_reasons", 5}});
    // The worker under a number that is not on the list: one of them is the worker, but nobody knows which.
    const auto unnamed = gpu.read(1);
    REQUIRE(unnamed);
    CHECK(unnamed->at("other_processes") == 1);
    CHECK_FALSE(unnamed->contains("other_pid.0"));
    CHECK(gpu.problem().empty());
    CHECK(gpu.pid());
}

TEST_CASE("a GPU with more processes than expected", "[telemetry]") {
    GpuSource gpu(settings_for("crowded"));
    const auto values = gpu.read(::getpid());
    REQUIRE(values);
    CHECK(values->at("other_processes") == 99);
    CHECK(values->contains("other_pid.7"));
    CHECK_FALSE(values->contains("other_pid.8"));
}

TEST_CASE("a GPU that cannot be read is not checked, and the reason is known", "[telemetry]") {
    {
        GpuSource failing(settings_for("failing"));
        const auto values = failing.read(1);
        REQUIRE(values);
        CHECK(values->empty());  // it answers, and tells nothing
    }
    const auto problem_of = [](const GpuSettings& settings) {
        GpuSource gpu(settings);
        CHECK_FALSE(gpu.read(1));
        CHECK_FALSE(gpu.read(1));
        CHECK_FALSE(gpu.pid());
        return gpu.problem();
    };
    CHECK_THAT(problem_of(settings_for("no_device")),
               Catch::Contains("nvmlDeviceGetHandleByUUID of GPU-0123") && Catch::Contains("Not Found"));
    CHECK_THAT(problem_of(settings_for("no_init")), Catch::Contains("nvmlInit_v2 failed: Driver Not Loaded"));
    CHECK_THAT(problem_of(settings_for("is_not_there")), Catch::Contains("cannot load") && Catch::Contains("is_not_there"));
    GpuSettings other = settings_for("");
    other.library = KESTREL_ENGINE_LIB;  // a library, but another one
    CHECK_THAT(problem_of(other), Catch::Contains("has no nvmlInit_v2"));
}

TEST_CASE("a GPU that hangs costs one deadline and its process, nothing else", "[telemetry]") {
    const bool at_start = GENERATE(true, false);
    GpuSettings settings = settings_for(at_start ? "hangs_at_start" : "hangs_later");
    (at_start ? settings.start_deadline : settings.deadline) = 100ms;
    pid_t pid = 0;
    {
        GpuSource gpu(settings);
        pid = static_cast<pid_t>(gpu.pid().value_or(0));
        REQUIRE(pid > 0);
        if (!at_start) {
            GpuSource patient(settings_for("hangs_later"));
            CHECK(patient.read(1));  // the first reading is a good one
            (void)gpu.read(1);       // though on a busy machine it may take longer than this deadline
        }
        CHECK_FALSE(gpu.read(1));
        CHECK_THAT(gpu.problem(), Catch::Contains("no answer within 100 ms"));
        const auto began = Clock::now();
        for (int i = 0; i < 1000; ++i) CHECK_FALSE(gpu.read(1));
        CHECK(Clock::now() - began < 5s);  // it is not asked again: that would be 100 s
        CHECK_FALSE(gpu.pid());
    }
    CHECK(::kill(pid, 0) != 0);
}

TEST_CASE("a reading process that is killed is not checked any more", "[telemetry]") {
    GpuSource gpu(settings_for("good"));
    REQUIRE(gpu.read(1));
    REQUIRE(::kill(static_cast<pid_t>(gpu.pid().value()), SIGKILL) == 0);
    CHECK_FALSE(gpu.read(1));
    CHECK_THAT(gpu.problem(), Catch::Contains("ended"));
}

TEST_CASE("a reading holds what its sources told, with place and time", "[telemetry]") {
    const Child worker(wait_forever);
    Telemetry cpu({"cpu: Example", "", "", 10s, 10s});
    const Reading first = cpu.read(worker.pid, {2});
    const Reading second = cpu.read(worker.pid, {2, 1, 5});
    CHECK(first.replicate == 2);
    CHECK(first.super_round == -1);
    CHECK(first.round == -1);
    CHECK(second.super_round == 1);
    CHECK(second.round == 5);
    CHECK(first.at_ns >= 0);
    CHECK(second.at_ns > first.at_ns);
    CHECK(value_of(first, "cpu", "busy_s").value_or(0.0) > 0.0);
    CHECK(value_of(first, "cpu", "worker_s"));
    CHECK_FALSE(first.sources.contains("gpu"));
    CHECK(cpu.gpu_problem().empty());

    Telemetry gpu({device, library("good"), "", 10s, 10s});
    CHECK(value_of(gpu.read(worker.pid, {}), "gpu", "sm_mhz") == 1980.0);
    Telemetry silent({device, library("failing"), "", 10s, 10s});
    CHECK_FALSE(silent.read(worker.pid, {}).sources.contains("gpu"));
    Telemetry unnamed({"cuda: Example GPU", library("good"), "", 10s, 10s});
    CHECK_FALSE(unnamed.read(worker.pid, {}).sources.contains("gpu"));
    CHECK_THAT(unnamed.gpu_problem(), Catch::Contains("UUID"));
}

TEST_CASE("LOAD: what another process uses is seen, what the worker uses is not", "[telemetry]") {
    const Child worker(wait_forever);
    const Child busy(keep_busy);
    // The same time twice: once the busy process is somebody else, once it is the worker.
    Telemetry telemetry({"cpu: Example", "", "", 1s, 1s});
    std::vector<Reading> as_other{telemetry.read(worker.pid, {0})};
    std::vector<Reading> as_worker{telemetry.read(busy.pid, {0})};
    Plan plan;
    plan.replicates = 1;
    plan.super_rounds = 1;
    std::vector<Window> windows;
    for (int round = 0; round < 6; ++round) {
        // Until the busy one got its share, however many it has to share with.
        const double before = platform::process_cpu_s(busy.pid).value_or(0.0);
        for (int i = 0; i < 1000 && platform::process_cpu_s(busy.pid).value_or(0.0) < before + 0.05; ++i) {
            std::this_thread::sleep_for(10ms);
        }
        as_other.push_back(telemetry.read(worker.pid, {0, 0, round}));
        as_worker.push_back(telemetry.read(busy.pid, {0, 0, round}));
        for (int slot = 0; slot < 3; ++slot) windows.push_back({0, 0, round, slot, static_cast<ArmRole>(slot), 0, 1, {1}, ""});
    }
    const Interlude other{&as_other.front(), &as_other.back()};
    const Interlude own{&as_worker.front(), &as_worker.back()};
    const double used = own.growth("cpu", "worker_s").value();
    REQUIRE(used > 0.29);
    // Five fields in ticks of 10 ms (telemetry_cpu.cpp), and a tick of the scheduler's on each CPU whose time is sampled.
    const double uncertain = 0.05 + 0.01 * std::thread::hardware_concurrency();
    CHECK(other.others_s().value() > used - uncertain);
    CHECK(own.others_s().value() < other.others_s().value() - used + uncertain);
    const TelemetryFindings found = check_telemetry(plan, windows, as_other, false);
    const auto load = std::find_if(found.warnings.begin(), found.warnings.end(), [](const Finding& one) { return one.code == "LOAD"; });
    REQUIRE(load != found.warnings.end());
    CHECK_THAT(load->sentence, Catch::Contains("throughout the session"));
}
