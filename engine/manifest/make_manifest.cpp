// Writes the manifest of one engine variant from what compiler and linker report about themselves.
//
//   kestrel_make_manifest --engine NAME --target ARCH --source-root DIR --build-root DIR --out FILE --note FILE
//                         --objects OBJECT... --libraries LIBRARY... --link COMMAND...
//
// OBJECT was compiled through keep_depfile.sh. COMMAND is the link command without objects, what follows them (LIBRARY) and output; it is
// run once on the objects, into a file that is thrown away, to learn what the linker reads. Two variants' manifests differ in nothing but
// the knob and what follows from it: no time, host, output name or place on disk is written.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/manifest/dependencies.hpp"
#include "engine/manifest/normalise.hpp"
#include "engine/manifest/process.hpp"

namespace {

namespace fs = std::filesystem;
using kestrel::build::Roots;
using nlohmann::json;

struct Options {
    std::string engine;
    std::string target;
    Roots roots;
    fs::path out;
    fs::path note;
    std::vector<std::string> objects;
    std::vector<std::string> libraries;
    std::vector<std::string> link;
};

std::string without_slash(std::string path) {
    while (path.size() > 1 && path.back() == '/') path.pop_back();
    return fs::path(path).lexically_normal().string();
}

Options parse(const std::vector<std::string>& arguments) {
    Options options;
    std::map<std::string, std::string> single;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        if (arguments[i] == "--link") {
            options.link.assign(arguments.begin() + static_cast<std::ptrdiff_t>(i) + 1, arguments.end());
            break;
        }
        if (arguments[i] == "--objects") {
            while (i + 1 < arguments.size() && arguments[i + 1] != "--libraries") options.objects.push_back(arguments[++i]);
        } else if (arguments[i] == "--libraries") {
            while (i + 1 < arguments.size() && arguments[i + 1] != "--link") options.libraries.push_back(arguments[++i]);
        } else if (i + 1 < arguments.size()) {
            single[arguments[i]] = arguments[i + 1];
            ++i;
        }
    }
    for (const char* name : {"--engine", "--target", "--source-root", "--build-root", "--out", "--note"}) {
        if (single[name].empty()) throw std::runtime_error(std::string(name) + " is missing");
    }
    if (options.objects.empty() || options.link.empty())
        throw std::runtime_error("--objects, --libraries and --link are needed, in this order");
    options.engine = single["--engine"];
    options.target = single["--target"];
    options.roots = {without_slash(single["--source-root"]), without_slash(single["--build-root"])};
    options.out = single["--out"];
    options.note = single["--note"];
    return options;
}

// Hashes each file once and files it under its normalised name.
class FileHashes {
  public:
    explicit FileHashes(const Roots& roots) : roots_(roots) {}
    void add(const fs::path& path) {
        const std::string name = kestrel::build::normalised_path(path, roots_);
        if (!hashes_.contains(name)) hashes_[name] = kestrel::build::file_sha256(path);
    }
    [[nodiscard]] json to_json() const { return hashes_; }

  private:
    const Roots& roots_;
    std::map<std::string, std::string> hashes_;
};

json unit_json(const kestrel::build::Compilation& unit, const std::string& object, const Roots& roots, FileHashes& files) {
    for (const fs::path& input : unit.inputs) files.add(input);
    return {{"source", kestrel::build::normalised_path(unit.source, roots)},
            {"argv", kestrel::build::normalised_command(unit.argv, roots)},
            {"object_sha256", kestrel::build::file_sha256(object)}};
}

// Links once to learn the inputs. The manifest's own symbols do not exist yet, so they are given as zero.
json link_json(const Options& options) {
    const fs::path trial = fs::path(options.out).replace_extension(".trial.so");
    const fs::path record = fs::path(options.out).replace_extension(".trial.dep");
    std::vector<std::string> command = options.link;
    command.insert(command.end(), options.objects.begin(), options.objects.end());
    command.insert(command.end(), options.libraries.begin(), options.libraries.end());
    command.insert(command.end(), {"-Wl,--defsym=kestrel_manifest_begin=0,--defsym=kestrel_manifest_end=0",
                                   "-Wl,--dependency-file=" + record.string(), "-o", trial.string()});
    (void)kestrel::build::output_of(command);

    FileHashes inputs(options.roots);
    for (const std::string& name : kestrel::build::linker_prerequisites(kestrel::build::read_file(record))) {
        if (std::find(options.objects.begin(), options.objects.end(), name) == options.objects.end()) inputs.add(fs::absolute(name));
    }
    inputs.add(options.note);
    fs::remove(trial);
    fs::remove(record);
    std::vector<std::string> recorded = options.link;
    recorded.insert(recorded.end(), options.libraries.begin(), options.libraries.end());
    return {{"argv", kestrel::build::normalised_command(recorded, options.roots)}, {"inputs", inputs.to_json()}};
}

std::string first_line_of_version(const std::string& program) {
    const std::string text = kestrel::build::output_of({program, "--version"});
    return text.substr(0, text.find('\n'));
}

json tools_json(const std::string& compiler) {
    const fs::path driver = kestrel::build::find_program(compiler);
    if (driver.empty()) throw std::runtime_error("the compiler " + compiler + " is not found");
    json tools{{"c++", {{"version", first_line_of_version(driver.string())}, {"sha256", kestrel::build::file_sha256(driver)}}}};
    for (const std::string name : {"cc1plus", "as", "ld"}) {
        std::string answer = kestrel::build::output_of({compiler, "-print-prog-name=" + name});
        answer.erase(std::remove(answer.begin(), answer.end(), '\n'), answer.end());
        const fs::path program = kestrel::build::find_program(answer);
        if (program.empty() && name == "cc1plus") continue;  // a compiler that is its own front end
        if (program.empty()) throw std::runtime_error("the compiler's " + name + " is not found: " + answer);
        // cc1plus reports no version of its own; it belongs to the driver.
        const std::string version = first_line_of_version(name == "cc1plus" ? driver.string() : program.string());
        tools[name] = {{"version", version}, {"sha256", kestrel::build::file_sha256(program)}};
    }
    return tools;
}

// nvcc and the programs it starts, which lie beside it.
void add_cuda_tools(const std::string& nvcc, json& tools) {
    const fs::path driver = kestrel::build::find_program(nvcc);
    if (driver.empty()) throw std::runtime_error("the compiler " + nvcc + " is not found");
    const std::string text = kestrel::build::output_of({driver.string(), "--version"});
    const std::size_t release = text.find("release ");
    const std::string version = "nvcc " + text.substr(release, text.find('\n', release) - release);
    tools["nvcc"] = {{"version", version}, {"sha256", kestrel::build::file_sha256(driver)}};
    for (const char* part : {"cudafe++", "../nvvm/bin/cicc", "ptxas", "fatbinary"}) {
        const fs::path program = driver.parent_path() / part;
        tools[program.filename().string()] = {{"version", version}, {"sha256", kestrel::build::file_sha256(program)}};
    }
}

void write_manifest(const Options& options) {
    FileHashes files(options.roots);
    json units = json::array();
    json tools = tools_json(options.link.front());
    for (const std::string& object : options.objects) {
        const kestrel::build::Compilation unit = kestrel::build::read_compilation(object, options.roots.source);
        if (fs::path(unit.argv.front()).filename() == "nvcc" && !tools.contains("nvcc")) add_cuda_tools(unit.argv.front(), tools);
        units.push_back(unit_json(unit, object, options.roots, files));
    }
    const json manifest{{"format", 1},    {"engine", options.engine}, {"target", options.target},
                        {"units", units}, {"files", files.to_json()}, {"link", link_json(options)},
                        {"tools", tools}};

    const fs::path unfinished = fs::path(options.out).replace_extension(".json.part");
    std::ofstream out(unfinished, std::ios::binary);
    out << manifest.dump();
    out.close();
    if (!out) throw std::runtime_error("cannot write " + unfinished.string());
    fs::rename(unfinished, options.out);
}

}  // namespace

int main(int argc, char** argv) {
    try {
        write_manifest(parse(std::vector<std::string>(argv + 1, argv + argc)));
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "kestrel_make_manifest: %s\n", error.what());
        return 1;
    }
}
