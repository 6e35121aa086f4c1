#include "runner/session/arm_copies.hpp"

#include "runner/identity/artifact_store.hpp"
#include "runner/identity/sha256.hpp"
#include "runner/record/error.hpp"
#include "runner/record/names.hpp"

namespace kestrel::session {
namespace {

std::filesystem::path folder_of(const std::string& work_directory, const std::string& uuid) {
    return std::filesystem::path(work_directory) / "arms" / uuid;
}

}  // namespace

ArmCopies::ArmCopies(const std::string& work_directory, const std::string& uuid, const Artifact& base, const Artifact& candidate)
    : directory_(folder_of(work_directory, uuid)) {
    std::filesystem::create_directories(directory_);
    const std::array<const Artifact*, arm_count> sources{&base, &base, &candidate};
    for (std::size_t i = 0; i < sources.size(); ++i) {
        // Paths of equal length: the loader's copies of them must not shift one arm's memory against another's.
        paths_.at(i) = (directory_ / ("arm" + std::to_string(i) + ".so")).string();
        expected_.at(i) = sources.at(i)->sha256;
        make_byte_copy(sources.at(i)->stored_path, paths_.at(i));
    }
}

ArmCopies::~ArmCopies() {
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
}

const std::string& ArmCopies::path(ArmRole role) const {
    return paths_.at(index_of(role));
}

const std::string& ArmCopies::artifact(ArmRole role) const {
    return expected_.at(index_of(role));
}

std::string ArmCopies::context_path(ArmRole role) const {
    return (directory_ / ("context" + std::to_string(index_of(role)) + ".state")).string();
}

std::vector<Finding> ArmCopies::changed() const {
    std::vector<Finding> findings;
    for (std::size_t i = 0; i < paths_.size(); ++i) {
        std::string found;
        try {
            found = sha256_file(paths_.at(i));
        } catch (const Error& error) {
            found = error.what();
        }
        if (found != expected_.at(i)) {
            findings.push_back({"ARTIFACT", "the library of the " + std::string(name_of(static_cast<ArmRole>(i))) +
                                                " arm changed during the session: expected " + expected_.at(i) + ", found " + found +
                                                "; keep other programs away from the store and run again"});
        }
    }
    return findings;
}

void remove_arm_copies(const std::string& work_directory, const std::string& uuid) {
    std::error_code ignored;
    std::filesystem::remove_all(folder_of(work_directory, uuid), ignored);
}

}  // namespace kestrel::session
