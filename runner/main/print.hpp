// Text or JSON on standard output, whichever was asked for.
#pragma once

#include <iostream>

#include "reports/session_text.hpp"
#include "runner/main/commands.hpp"
#include "runner/record/json.hpp"

namespace kestrel::cli {

// Only the chosen one is made. JSON is UTF-8 whatever bytes a path holds.
template <typename Text, typename Json>
void print(const CommonOptions& common, const Text& text, const Json& json) {
    if (common.json) {
        std::cout << json().dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
    } else {
        std::cout << text();
    }
    std::cout.flush();
    if (!std::cout)
        throw Error(ExitCode::storage, "standard output cannot be written; a session is in the database all the same: 'kestrel-ab list'");
}

inline void print_session(const CommonOptions& common, const Session& session, const std::string& database, bool all_rounds) {
    print(
        common,
        [&] {
            return session_text(session, {database, all_rounds ? RoundDetail::all : RoundDetail::super_rounds});
        },
        [&] { return session_json(session, database); });
}

}  // namespace kestrel::cli
