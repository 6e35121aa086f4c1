#include <catch2/catch.hpp>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "runner/record/error.hpp"
#include "runner/session/expected_outputs.hpp"

using namespace kestrel;

namespace {

// A safetensors file with this header and `data_bytes` zero bytes.
std::string file_with(const std::string& header, std::size_t data_bytes) {
    const auto path = std::filesystem::temp_directory_path() / "kestrel_expected_outputs_test.safetensors";
    std::ofstream out(path, std::ios::binary);
    const auto length = static_cast<std::uint64_t>(header.size());
    out.write(reinterpret_cast<const char*>(&length), sizeof length);
    out << header << std::string(data_bytes, '\0');
    return path.string();
}

const std::string tokens = R"("tokens":{"dtype":"I32","shape":[2],"data_offsets":[0,8]})";
const std::string greedy = R"("greedy":{"dtype":"I32","shape":[1],"data_offsets":[8,12]})";
const std::string logits = R"("logits":{"dtype":"F32","shape":[2,3],"data_offsets":[12,36]})";

}  // namespace

TEST_CASE("expected outputs: a good file is read") {
    const auto read = session::read_expected_outputs(file_with("{" + tokens + "," + greedy + "," + logits + "}", 36));
    CHECK(read.tokens.size() == 2);
    CHECK(read.greedy.size() == 1);
    CHECK(read.vocab == 3);
    CHECK(read.logits.size() == 6);
}

TEST_CASE("expected outputs: the fixtures are read") {
    const auto read = session::read_expected_outputs(std::string(KESTREL_TEST_DIR) + "/data/qwen35/f32-4l/expected.safetensors");
    CHECK(read.tokens.size() == 24);
    CHECK(read.greedy.size() == 17);
    CHECK(read.vocab == 256);
}

TEST_CASE("expected outputs: damaged files are refused, naming file or tensor") {
    const auto refused = [](const std::string& path) {
        try {
            (void)session::read_expected_outputs(path);
        } catch (const Error& error) {
            return std::string(error.what());
        }
        return std::string("accepted");
    };
    using Catch::Matchers::Contains;
    CHECK_THAT(refused("/no/such/file"), Contains("/no/such/file"));
    CHECK_THAT(refused(file_with("", 0)), Contains("header"));
    CHECK_THAT(refused(file_with("{\"tokens\":", 36)), Contains("damaged header"));
    CHECK_THAT(refused(file_with("{" + tokens + "," + greedy + "}", 36)), Contains("logits"));
    CHECK_THAT(refused(file_with("{" + tokens + "," + greedy + "," + logits + "}", 35)), Contains("tensor logits"));
    const std::string lie = R"("logits":{"dtype":"F32","shape":[2,4611686018427387904],"data_offsets":[12,36]})";
    CHECK_THAT(refused(file_with("{" + tokens + "," + greedy + "," + lie + "}", 36)), Contains("larger than the file"));
    const std::string rows = R"("logits":{"dtype":"F32","shape":[3,2],"data_offsets":[12,36]})";
    CHECK_THAT(refused(file_with("{" + tokens + "," + greedy + "," + rows + "}", 36)), Contains("one row per token"));
    // A header length larger than the file.
    const auto path = std::filesystem::temp_directory_path() / "kestrel_expected_outputs_lie.safetensors";
    std::ofstream(path, std::ios::binary) << std::string("\xff\xff\xff\xff\xff\xff\xff\x7f", 8) << "{}";
    CHECK_THAT(refused(path.string()), Contains("longer than the file"));
}
