// The files that live as long as a session: the three libraries that it loads, and the states after its context.
#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include "runner/record/record.hpp"
#include "runner/stats/verdict.hpp"

namespace kestrel::session {

// Byte copies of the arms, with inodes of their own so that the loader takes them for three libraries; removed with the session.
class ArmCopies {
  public:
    // Below work_directory/arms/uuid. Throws Error(storage).
    ArmCopies(const std::string& work_directory, const std::string& uuid, const Artifact& base, const Artifact& candidate);
    ArmCopies(const ArmCopies&) = delete;
    ArmCopies& operator=(const ArmCopies&) = delete;
    ~ArmCopies();

    [[nodiscard]] const std::string& path(ArmRole role) const;
    [[nodiscard]] const std::string& artifact(ArmRole role) const;  // SHA-256
    // A file beside the copies, removed with them; not there yet.
    [[nodiscard]] std::string context_path(ArmRole role) const;

    // A finding for every copy whose bytes are no longer the registered artifact's.
    [[nodiscard]] std::vector<Finding> changed() const;

  private:
    std::filesystem::path directory_;
    std::array<std::string, arm_count> paths_;
    std::array<std::string, arm_count> expected_;
};

// Removes the files of a session whose runner was killed; nothing if there are none.
void remove_arm_copies(const std::string& work_directory, const std::string& uuid);

}  // namespace kestrel::session
