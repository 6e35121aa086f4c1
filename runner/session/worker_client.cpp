#include "runner/session/worker_client.hpp"

#include <chrono>
#include <stdexcept>

#include "runner/record/json.hpp"

namespace kestrel::session {
namespace {

bool is_last(const std::string& type) {
    return type == "inspected" || type == "saved" || type == "done" || type == "checked" || type == "timed";
}

void note_phase(const nlohmann::json& message, WorkerEnd& end) {
    end.last_phase = message.at("what").get<std::string>();
    end.arm.reset();
    if (message.contains("arm")) end.arm = message.at("arm").get<ArmRole>();
}

// Why the conversation stopped, from what was said and how the process ended.
void conclude(WorkerEnd& end, bool said_last, const std::string& own_message, const platform::ExitStatus& exit) {
    end.max_rss_kib = exit.max_rss_kib;
    if (end.kind == WorkerEnd::Kind::hung || end.kind == WorkerEnd::Kind::interrupted) return;
    if (said_last && exit.clean()) return;
    if (!own_message.empty()) {
        end.kind = WorkerEnd::Kind::failed;
        end.detail = own_message;
        return;
    }
    end.kind = WorkerEnd::Kind::crashed;
    end.detail = exit.text() + " during '" + end.last_phase + "'";
}

}  // namespace

std::string name_of(WorkerEnd::Kind kind) {
    switch (kind) {
        case WorkerEnd::Kind::finished:
            return "finished";
        case WorkerEnd::Kind::crashed:
            return "crashed";
        case WorkerEnd::Kind::hung:
            return "hung";
        case WorkerEnd::Kind::failed:
            return "failed";
        case WorkerEnd::Kind::interrupted:
            break;
    }
    return "interrupted";
}

WorkerEnd run_worker(const Job& job, std::optional<int> lock_fd, std::chrono::seconds silence_limit,
                     const std::function<void(std::int64_t pid)>& on_start, const std::function<bool(const nlohmann::json&)>& on_message) {
    platform::WorkerProcess worker({"__worker"}, lock_fd);
    if (on_start) on_start(worker.pid());
    WorkerEnd end;
    end.last_phase = "start";
    bool said_last = false;
    std::string own_message;
    bool talking = worker.channel().send(encode(job));
    while (talking) {
        const auto got = worker.channel().receive(silence_limit);
        if (got.status == platform::LineChannel::Status::closed) break;
        if (got.status == platform::LineChannel::Status::timeout) {
            end.kind = WorkerEnd::Kind::hung;
            end.detail = "no word for " + std::to_string(silence_limit.count()) + " s during '" + end.last_phase + "'; killed";
            worker.kill();
            break;
        }
        if (got.status == platform::LineChannel::Status::interrupted) {
            end.kind = WorkerEnd::Kind::interrupted;
            end.detail = "stopped by the user";
            worker.kill();
            break;
        }
        const nlohmann::json message = parse_json(got.line);
        const std::string type = message.at("type").get<std::string>();
        if (type == "phase") {
            note_phase(message, end);
        } else if (type == "error") {
            own_message = message.at("message").get<std::string>();
            end.error_code = message.at("code").get<int>();
        } else {
            said_last = is_last(type);
            // A worker that is ready always waits; whether it may go on is decided after a round.
            const bool go = on_message(message) || type == "ready";
            if (go) talking = worker.channel().send("go");
        }
    }
    conclude(end, said_last, own_message, worker.wait(std::chrono::seconds(5)));
    return end;
}

}  // namespace kestrel::session
