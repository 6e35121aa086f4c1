#include "runner/identity/artifact_store.hpp"

#include <system_error>

#include "runner/identity/elf_note.hpp"
#include "runner/identity/file_copy.hpp"
#include "runner/identity/git_state.hpp"
#include "runner/identity/manifest.hpp"
#include "runner/identity/sha256.hpp"
#include "runner/record/error.hpp"

namespace kestrel {

namespace fs = std::filesystem;

namespace {

void make_folder(const fs::path& folder) {
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) throw Error(ExitCode::storage, "cannot make the artifact folder " + folder.string() + ": " + error.message());
}

// Puts a copy under its hash unless a good one is there.
void store(UnpublishedCopy& copy, const fs::path& stored) {
    if (!fs::exists(fs::symlink_status(stored))) return copy.publish(stored);
    std::string found = "nothing readable";
    try {
        found = sha256_file(stored);
    } catch (const Error&) {  // unreadable counts as damaged
    }
    if (found == copy.sha256()) return;

    const fs::path set_aside = stored.string() + ".damaged";
    std::error_code error;
    fs::rename(stored, set_aside, error);
    if (error) throw Error(ExitCode::storage, "cannot set the damaged " + stored.string() + " aside: " + error.message());
    copy.publish(stored);
    throw Error(ExitCode::storage, "the stored library " + stored.string() + " was damaged: expected SHA-256 " + copy.sha256() +
                                       ", found " + found + ". It is now " + set_aside.string() +
                                       " and a good copy is in its place; check the disk, then run the command again.");
}

}  // namespace

Artifact register_artifact(const fs::path& library, const fs::path& store_dir) {
    make_folder(store_dir);
    UnpublishedCopy copy(library, store_dir);
    // Everything below looks at the copy, so that it describes the bytes that were hashed even if `library` changes meanwhile.
    EngineLibrary contents = read_engine_library(copy.path(), library.string());
    require_self_contained(contents, library.string());
    const Manifest manifest = parse_manifest(contents.manifest_json, library.string());

    const fs::path stored = fs::absolute(store_dir) / (copy.sha256() + ".so");
    store(copy, stored);

    Artifact artifact;
    artifact.sha256 = copy.sha256();
    artifact.bytes = copy.bytes();
    artifact.engine_name = manifest.engine;
    artifact.seen_path = fs::absolute(library).lexically_normal().string();
    artifact.stored_path = stored.lexically_normal().string();
    artifact.manifest_sha256 = sha256_hex(contents.manifest_json);
    artifact.manifest_json = std::move(contents.manifest_json);
    const GitState git = git_state_of(fs::path(artifact.seen_path).parent_path());
    artifact.commit = git.commit;
    artifact.dirty = git.dirty;
    return artifact;
}

void make_byte_copy(const fs::path& from, const fs::path& to) {
    const fs::path target = fs::absolute(to);
    make_folder(target.parent_path());
    UnpublishedCopy copy(from, target.parent_path());
    copy.publish(target);
    const std::string found = sha256_file(target);
    if (found != copy.sha256()) {
        throw Error(ExitCode::storage, "the copy " + target.string() + " does not read back as written: expected SHA-256 " + copy.sha256() +
                                           ", found " + found);
    }
}

void verify_unchanged(const Artifact& artifact) {
    std::string found;
    try {
        found = sha256_file(artifact.stored_path);
    } catch (const Error& error) {
        throw Error(ExitCode::storage, "the stored library of SHA-256 " + artifact.sha256 + " is gone: " + error.what());
    }
    if (found == artifact.sha256) return;
    throw Error(ExitCode::storage, "the stored library " + artifact.stored_path + " changed: expected SHA-256 " + artifact.sha256 +
                                       ", found " + found + ". What was measured with it cannot be trusted.");
}

}  // namespace kestrel
