// The tests that need a device. Where there is none they are skipped, which ctest is told by the exit code.
#define CATCH_CONFIG_RUNNER
#include <cuda_runtime_api.h>

#include <catch2/catch.hpp>
#include <cstdio>

int main(int argc, char** argv) {
    constexpr int skipped = 77;  // SKIP_RETURN_CODE in tests/CMakeLists.txt
    int devices = 0;
    const cudaError_t status = cudaGetDeviceCount(&devices);
    if (status != cudaSuccess || devices == 0) {
        std::printf("skipped: no CUDA device (%s)\n", cudaGetErrorString(status));
        return skipped;
    }
    cudaDeviceProp device{};
    int driver = 0;
    if (cudaGetDeviceProperties(&device, 0) != cudaSuccess || cudaDriverGetVersion(&driver) != cudaSuccess) return 1;
    std::printf("device: %s, sm_%d%d, driver API %d\n", device.name, device.major, device.minor, driver);
    return Catch::Session().run(argc, argv);
}
