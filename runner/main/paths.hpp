// Where things are: everything relative to the program itself, so that build tree, installation and bundle look alike.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace kestrel::cli {

// --db, else KESTREL_AB_DB, else $XDG_STATE_HOME/kestrel-ab/kestrel-ab.db.
[[nodiscard]] std::string database_path(const std::string& option);

// The directory beside a database that holds artifacts: FILE.d
[[nodiscard]] std::string work_directory(const std::string& database);

[[nodiscard]] std::string library_directory();  // <prefix>/lib
[[nodiscard]] std::string config_directory();   // <prefix>/share/kestrel-ab

// Names (without folder and ending) and paths, sorted.
using Found = std::vector<std::pair<std::string, std::string>>;
[[nodiscard]] Found find_engines();
[[nodiscard]] Found find_models();
[[nodiscard]] Found find_experiments();
[[nodiscard]] Found find_policies();

// A name from the lists above or a path that exists, as an absolute path. Throw Error(usage) listing what there is.
[[nodiscard]] std::string engine_path(const std::string& name_or_path);
[[nodiscard]] std::string model_path(const std::string& name_or_path);
[[nodiscard]] std::string experiment_path(const std::string& name_or_path);
[[nodiscard]] std::string policy_path(const std::string& name_or_path);

}  // namespace kestrel::cli
