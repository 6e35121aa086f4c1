// The service's record of itself, read from sealed sessions.
#include "runner/record/json.hpp"
#include "runner/record/names.hpp"
#include "store/repository.hpp"

namespace kestrel {
namespace {

constexpr const char* columns =
    "SELECT s.uuid, s.started_at, (julianday(s.ended_at) - julianday(s.started_at)) * 86400.0, s.host, s.device, a.engine_name,"
    " w.json ->> 'launch_mode', w.model_name, w.sha256, s.experiment, s.plan ->> 'super_rounds', s.place_kind = 'none', v.kind, v.margin,"
    " c.d, c.lo, c.hi, c.confidence, c.sd, c.replicates, k.d, k.lo, k.hi, k.confidence, k.sd, k.replicates,"
    " (SELECT e.detail ->> 'd' FROM event e WHERE e.session_id = s.id AND e.kind = 'planted' AND json_valid(e.detail) LIMIT 1)"
    " FROM session s JOIN workload w ON w.id = s.workload_id JOIN verdict v ON v.session_id = s.id"
    " JOIN comparison c ON c.session_id = s.id AND c.candidate_arm = 'candidate'"
    " JOIN comparison k ON k.session_id = s.id AND k.candidate_arm = 'control'"
    " JOIN arm r ON r.session_id = s.id AND r.role = 'base' JOIN artifact a ON a.id = r.artifact_id"
    " WHERE s.state = 'sealed' AND (?1 = '' OR w.sha256 = ?1) AND (?2 = '' OR s.host = ?2) AND (?3 = '' OR s.device = ?3)"
    " ORDER BY s.started_at DESC, s.id DESC LIMIT ?4";

Interval read_interval(const Statement& row, int first) {
    return {row.real(first),     row.real(first + 1), row.real(first + 2),
            row.real(first + 3), row.real(first + 4), static_cast<int>(row.integer(first + 5))};
}

LedgerEntry read_entry(const Statement& row) {
    LedgerEntry entry;
    entry.uuid = row.text(0);
    entry.started_at = row.text(1);
    entry.seconds = row.real(2);
    entry.host = row.text(3);
    entry.device = row.text(4);
    entry.engine = row.text(5);
    entry.launch_mode = row.text(6);
    entry.model_name = row.text(7);
    entry.workload_sha256 = row.text(8);
    entry.experiment = row.text(9);
    entry.super_rounds = static_cast<int>(row.integer(10));
    entry.same_code = row.integer(11) != 0;
    entry.verdict = verdict_kind_from(row.text(12));
    entry.margin = row.real(13);
    entry.candidate = read_interval(row, 14);
    entry.control = read_interval(row, 20);
    if (!row.is_null(26)) entry.planted_d = row.real(26);
    return entry;
}

}  // namespace

std::vector<LedgerEntry> Store::ledger(const LedgerFilter& filter) {
    Statement row(*connection_, columns);
    row.bind(filter.workload_sha256, filter.host, filter.device, filter.limit > 0 ? filter.limit : -1);
    std::vector<LedgerEntry> entries;
    while (row.step()) entries.push_back(read_entry(row));
    return entries;
}

}  // namespace kestrel
