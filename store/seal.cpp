#include "store/seal.hpp"

#include <openssl/evp.h>

#include <array>
#include <memory>

#include "runner/record/error.hpp"
#include "store/migrations.hpp"

namespace kestrel {
namespace {

class Sha256 {
  public:
    Sha256() : context_(EVP_MD_CTX_new()) { check(context_ && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1); }
    void update(std::string_view bytes) { check(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1); }
    std::string finish() {
        std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
        unsigned int size = 0;
        check(EVP_DigestFinal_ex(context_.get(), digest.data(), &size) == 1);
        static constexpr char digits[] = "0123456789abcdef";
        std::string hex;
        for (unsigned int i = 0; i < size; ++i) {
            hex += digits[digest[i] >> 4];
            hex += digits[digest[i] & 15];
        }
        return hex;
    }

  private:
    static void check(bool ok) {
        if (!ok) throw Error(ExitCode::storage, "OpenSSL cannot compute SHA-256; check its installation");
    }
    struct Free {
        void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
    };
    std::unique_ptr<EVP_MD_CTX, Free> context_;
};

// Columns are named one by one: a later schema may add columns without changing the seals that exist.
struct SealedTable {
    std::string_view name;
    std::string_view select;
    bool only_with_rows = false;
};
constexpr std::array<SealedTable, 9> sealed_tables{{
    {"session",
     "SELECT s.uuid, s.started_at, s.host, s.device, s.runner_version, s.place_kind, s.place_name, s.place_base, s.place_candidate,"
     " s.place_changed_objects, s.plan_sha256, s.plan, s.experiment, s.experiment_version, w.json, w.sha256, w.model_name, e.sha256, "
     "e.facts"
     " FROM session s JOIN workload w ON w.id = s.workload_id JOIN environment e ON e.id = s.environment_id WHERE s.id = ?1"},
    {"registration",
     "SELECT r.ordinal, a.sha256, a.bytes, a.engine_name, m.sha256, m.json, r.seen_path, r.stored_path, r.commit_id, r.dirty"
     " FROM registration r JOIN artifact a ON a.id = r.artifact_id JOIN manifest m ON m.id = a.manifest_id"
     " WHERE r.session_id = ?1 ORDER BY r.ordinal"},
    {"arm",
     "SELECT r.role, a.sha256, r.switches, r.effective_switches, r.borrowed_memory FROM arm r JOIN artifact a ON a.id = r.artifact_id"
     " WHERE r.session_id = ?1 ORDER BY r.role"},
    {"replicate",
     "SELECT replicate, worker_pid, load_order, status, detail, state_digest, distinct_tokens FROM replicate"
     " WHERE session_id = ?1 ORDER BY replicate"},
    {"round",
     "SELECT r.replicate, r.super_round, r.round, r.slot, r.arm, r.started_ns, r.window_ns, r.token_ns, o.digest"
     " FROM round r JOIN output o ON o.id = r.output_id WHERE r.session_id = ?1 ORDER BY r.replicate, r.super_round, r.round, r.slot"},
    {"event", "SELECT sequence, at, kind, detail FROM event WHERE session_id = ?1 ORDER BY sequence"},
    {"comparison",
     "SELECT base_arm, candidate_arm, d, lo, hi, confidence, sd, replicates, ratio, ratio_lo, ratio_hi FROM comparison"
     " WHERE session_id = ?1 ORDER BY candidate_arm"},
    {"verdict",
     "SELECT candidate_arm, kind, margin, delta, ratio, ratio_lo, ratio_hi, reasons, estimate FROM verdict"
     " WHERE session_id = ?1 ORDER BY candidate_arm"},
    {"telemetry",
     "SELECT replicate, super_round, round, at_ns, sources FROM telemetry WHERE session_id = ?1 ORDER BY replicate, super_round, round",
     true},
}};

}  // namespace

std::string store_sha256_hex(std::string_view bytes) {
    Sha256 hash;
    hash.update(bytes);
    return hash.finish();
}

std::string compute_seal(Connection& connection, std::int64_t session_id, const std::string& ended_at) {
    Sha256 hash;
    hash.update("kestrel-seal-1\nended " + ended_at + "\n");
    for (const SealedTable& table : sealed_tables) {
        if (table.only_with_rows && !has_telemetry(connection)) continue;  // a file of schema 1, opened to be read
        Statement rows(connection, table.select);
        rows.bind(session_id);
        // The count makes a row that moved from one table to the next change the hash.
        std::string text;
        std::int64_t count = 0;
        for (; rows.step(); ++count) {
            for (int column = 0; column < rows.columns(); ++column) text += rows.canonical(column);
            text += '\n';
        }
        if (count == 0 && table.only_with_rows) continue;
        hash.update(std::string(table.name) + " " + std::to_string(count) + "\n");
        hash.update(text);
    }
    return hash.finish();
}

}  // namespace kestrel
