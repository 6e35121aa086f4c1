// What the kernel tests share: seeded data, and arrays on the device.
#pragma once

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "engine/cuda/handles.hpp"
#include "engine/cuda/launch.hpp"

namespace kestrel::test {

inline constexpr double half_ulp = 0x1p-24;  // relative rounding error of one f32 operation

class Random {
  public:
    explicit Random(unsigned seed) : generator_(seed) {}
    std::vector<float> operator()(std::size_t count, float low = -1.0F, float high = 1.0F) {
        std::uniform_real_distribution<float> uniform(low, high);
        std::vector<float> values(count);
        for (float& value : values) value = uniform(generator_);
        return values;
    }

  private:
    std::mt19937 generator_;
};

// An array on the device with the values of a host array; every byte set where there are none, which reads as not-a-number.
class OnDevice {
  public:
    explicit OnDevice(const std::vector<float>& values) : memory_(cuda::make_buffer<float>(values.size())) {
        cuda::check(cudaMemcpy(memory_.get(), values.data(), memory_.bytes(), cudaMemcpyHostToDevice), "sending test data");
        cuda::check(cudaDeviceSynchronize(), "sending test data");
    }
    explicit OnDevice(std::size_t count) : memory_(cuda::make_buffer<float>(count)) {
        cuda::check(cudaMemset(memory_.get(), 0xFF, memory_.bytes()), "poisoning test data");
        cuda::check(cudaDeviceSynchronize(), "poisoning test data");
    }
    [[nodiscard]] float* get() const { return memory_.get(); }
    // After everything launched so far.
    [[nodiscard]] std::vector<float> values() const {
        std::vector<float> out(memory_.count());
        cuda::check(cudaDeviceSynchronize(), "waiting for test kernels");
        cuda::check(cudaMemcpy(out.data(), memory_.get(), memory_.bytes(), cudaMemcpyDeviceToHost), "fetching test data");
        return out;
    }

  private:
    cuda::Buffer<float> memory_;
};

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

inline double sigmoid(double x) {
    return 1.0 / (1.0 + std::exp(-x));
}

inline double sum_of_squares(const float* x, std::size_t n) {
    double sum = 0.0;
    for (std::size_t i = 0; i < n; ++i) sum += double{x[i]} * x[i];
    return sum;
}

inline cuda::Buffer<cuda::Control> control_at(std::int32_t position) {
    auto control = cuda::make_buffer<cuda::Control>(1);
    const cuda::Control host{.token = 0, .position = position, .next = -1, .unused = 0};
    cuda::check(cudaMemcpy(control.get(), &host, sizeof host, cudaMemcpyHostToDevice), "sending test data");
    return control;
}

}  // namespace kestrel::test
