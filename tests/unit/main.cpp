#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#include <cstring>

#include "runner/telemetry/gpu_child.hpp"

int main(int argc, char** argv) {
    // A process that reads a GPU is started as this very program, whatever that is.
    if (argc >= 2 && std::strcmp(argv[1], kestrel::telemetry::gpu_child_argument) == 0) {
        kestrel::telemetry::gpu_child_main({argv + 2, argv + argc});
    }
    return Catch::Session().run(argc, argv);
}
