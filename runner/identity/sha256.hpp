// SHA-256, the identity of artifacts, manifests, plans and outputs.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

struct evp_md_ctx_st;

namespace kestrel {

// Incremental. Move-only: a half-made digest has one owner.
class Sha256 {
  public:
    Sha256();
    Sha256(Sha256&&) noexcept;
    Sha256& operator=(Sha256&&) noexcept;
    ~Sha256();

    void update(std::string_view bytes);
    // 64 lower-case hexadecimal digits; the object then starts again from nothing.
    [[nodiscard]] std::string finish_hex();

  private:
    struct Free {
        void operator()(evp_md_ctx_st* context) const noexcept;
    };
    std::unique_ptr<evp_md_ctx_st, Free> context_;
};

// 64 lower-case hexadecimal digits.
[[nodiscard]] std::string sha256_hex(std::string_view bytes);

// Of a file's bytes, read in pieces. Throws Error(usage) that names the file if it cannot be read to its end.
[[nodiscard]] std::string sha256_file(const std::filesystem::path& path);

}  // namespace kestrel
