// Which commit a file's folder is at, for the record. Never a condition: a machine without git measures as well.
#pragma once

#include <filesystem>
#include <string>

namespace kestrel {

struct GitState {
    std::string commit;  // "" if the folder is in no git checkout or git does not answer
    bool dirty = false;  // tracked files differ from the commit
};

// Does not throw for any answer or failure of git.
[[nodiscard]] GitState git_state_of(const std::filesystem::path& folder);

}  // namespace kestrel
