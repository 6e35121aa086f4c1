// What this backend has beside the common interface: device memory for the caller, and the captured token.
#pragma once

#include <string_view>

#include "engine/backend.hpp"
#include "engine/cuda/decoder.hpp"

namespace kestrel::cuda {

class CudaBackend final : public Backend {
  public:
    CudaBackend(const Opening& opening, GdnVariant gdn, LaunchMode launch, Overlap overlap, Fusion fusion)
        : decoder_(opening, gdn, launch, overlap, fusion) {}

    void reset() override { decoder_.reset(); }
    std::int32_t decode(std::int32_t token) override { return decoder_.decode(token); }
    void read_logits(std::span<float> out) const override { decoder_.read_logits(out); }
    void read_hidden(std::span<float> out) const override { decoder_.read_hidden(out); }
    void read_final_norm(std::span<float> out) const override { decoder_.read_final_norm(out); }
    void read_gdn_state(std::uint32_t layer, std::span<float> out) const override { decoder_.read_gdn_state(layer, out); }
    [[nodiscard]] std::size_t saved_bytes() const override { return decoder_.saved_bytes(); }
    void save(std::span<std::byte> out) const override { decoder_.save(out); }
    void restore(std::span<const std::byte> in) override { decoder_.restore(in); }
    [[nodiscard]] const char* effective_switch(std::size_t index) const override;

    [[nodiscard]] cudaGraph_t captured() { return decoder_.captured(); }

  private:
    Decoder decoder_;
};

// allocate.v1 and graph.v1; null for others.
[[nodiscard]] const void* own_capability(std::string_view name);

}  // namespace kestrel::cuda
