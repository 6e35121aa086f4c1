// What this machine can do, what is missing, and what to do about it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace kestrel {

enum class DoctorStatus { ok, missing, not_checked };

struct DoctorItem {
    std::string name;  // "CUDA device"
    DoctorStatus status = DoctorStatus::not_checked;
    std::string detail;  // what was seen
    std::string advice;  // what to do; "" if nothing
};

[[nodiscard]] std::string doctor_text(const std::vector<DoctorItem>& items);

// {"format": 1, "kind": "doctor", "items": [{"name", "status": "ok" | "missing" | "not checked", "detail", "advice"}]}
[[nodiscard]] nlohmann::json doctor_json(const std::vector<DoctorItem>& items);

}  // namespace kestrel
