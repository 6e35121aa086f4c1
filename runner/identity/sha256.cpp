#include "runner/identity/sha256.hpp"

#include <openssl/evp.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <system_error>
#include <vector>

#include "runner/record/error.hpp"

namespace kestrel {

namespace {

constexpr std::size_t piece_bytes = 1U << 18U;

void require(int openssl_result) {
    if (openssl_result != 1) throw Error(ExitCode::invalid, "SHA-256 failed in OpenSSL; the installation of libcrypto is not usable");
}

}  // namespace

void Sha256::Free::operator()(evp_md_ctx_st* context) const noexcept {
    EVP_MD_CTX_free(context);
}

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
    require(context_ ? EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) : 0);
}

Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;
Sha256::~Sha256() = default;

void Sha256::update(std::string_view bytes) {
    require(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()));
}

std::string Sha256::finish_hex() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned int size = 0;
    require(EVP_DigestFinal_ex(context_.get(), digest.data(), &size));
    require(EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr));

    constexpr std::string_view digits = "0123456789abcdef";
    std::string text;
    text.reserve(2 * std::size_t{size});
    for (unsigned int i = 0; i < size; ++i) {
        text += digits[digest[i] >> 4U];
        text += digits[digest[i] & 15U];
    }
    return text;
}

std::string sha256_hex(std::string_view bytes) {
    Sha256 digest;
    digest.update(bytes);
    return digest.finish_hex();
}

std::string sha256_file(const std::filesystem::path& path) {
    const auto fail = [&](int error) {
        throw Error(ExitCode::usage, "cannot read " + path.string() + ": " + std::generic_category().message(error));
    };
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rbe"), &std::fclose);
    if (!file) fail(errno);

    Sha256 digest;
    std::vector<char> piece(piece_bytes);
    for (;;) {
        errno = 0;
        const std::size_t got = std::fread(piece.data(), 1, piece.size(), file.get());
        digest.update({piece.data(), got});
        if (got < piece.size()) break;
    }
    if (std::ferror(file.get()) != 0) fail(errno);
    return digest.finish_hex();
}

}  // namespace kestrel
