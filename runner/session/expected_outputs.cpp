#include "runner/session/expected_outputs.hpp"

#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "runner/platform/host.hpp"
#include "runner/record/error.hpp"

namespace kestrel::session {
namespace {

class Reader {
  public:
    explicit Reader(const std::string& path) : path_(path) {
        const auto text = platform::read_small_file(path);
        if (!text) fail("cannot be read");
        bytes_ = *text;
        std::uint64_t header = 0;
        if (bytes_.size() < sizeof header) fail("is shorter than a safetensors header");
        std::memcpy(&header, bytes_.data(), sizeof header);
        if (header > bytes_.size() - sizeof header) fail("has a header longer than the file");
        try {
            header_ = nlohmann::json::parse(bytes_.substr(sizeof header, header));
        } catch (const nlohmann::json::exception& error) {
            fail(std::string("has a damaged header: ") + error.what());
        }
        data_ = sizeof header + header;
    }

    // Elements of tensor `name`; checks type and rank, fills the shape.
    template <typename Element>
    std::vector<Element> tensor(const std::string& name, const std::string& type, std::size_t rank, std::vector<std::size_t>& shape) {
        try {
            const nlohmann::json& entry = header_.at(name);
            shape = entry.at("shape").get<std::vector<std::size_t>>();
            const auto offsets = entry.at("data_offsets").get<std::array<std::size_t, 2>>();
            const std::string found = entry.at("dtype").get<std::string>();
            if (found != type || shape.size() != rank)
                fail("tensor " + name + ": expected " + type + " of rank " + std::to_string(rank) + ", found " + found);
            std::size_t count = 1;
            for (const std::size_t extent : shape) {
                if (extent == 0 || count > bytes_.size() / extent) fail("tensor " + name + " has a shape larger than the file, or empty");
                count *= extent;
            }
            const std::size_t room = bytes_.size() - data_;
            if (offsets[0] > offsets[1] || offsets[1] > room || offsets[1] - offsets[0] != count * sizeof(Element)) {
                fail("tensor " + name + ": its offsets do not fit its shape and the file");
            }
            std::vector<Element> out(count);
            std::memcpy(out.data(), bytes_.data() + data_ + offsets[0], count * sizeof(Element));
            return out;
        } catch (const nlohmann::json::exception& error) {
            fail("tensor " + name + ": " + error.what());
        }
    }

  private:
    [[noreturn]] void fail(const std::string& what) const {
        throw Error(ExitCode::usage, path_ + " " + what + "; expected a safetensors file with tokens, logits and greedy");
    }
    std::string path_;
    std::string bytes_;
    nlohmann::json header_;
    std::size_t data_ = 0;
};

}  // namespace

ExpectedOutputs read_expected_outputs(const std::string& path) {
    Reader reader(path);
    ExpectedOutputs out;
    std::vector<std::size_t> shape;
    out.tokens = reader.tensor<std::int32_t>("tokens", "I32", 1, shape);
    out.greedy = reader.tensor<std::int32_t>("greedy", "I32", 1, shape);
    out.logits = reader.tensor<float>("logits", "F32", 2, shape);
    if (shape[0] != out.tokens.size()) {
        throw Error(ExitCode::usage, path + ": logits for " + std::to_string(shape[0]) + " tokens, but " +
                                         std::to_string(out.tokens.size()) + " tokens; expected one row per token");
    }
    out.vocab = shape[1];
    return out;
}

}  // namespace kestrel::session
