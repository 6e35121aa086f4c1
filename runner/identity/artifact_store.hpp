// Engine libraries kept under their hash: what is hashed is what is loaded, now and when the session is sealed.
#pragma once

#include <filesystem>

#include "runner/record/record.hpp"

namespace kestrel {

// Copies a library to store_dir/<sha256>.so (read-only, durable, never rewritten while good) and records what it says about
// itself and which commit its folder is at. The folder is made if it does not exist.
// Throws Error(usage) if the file cannot be read, Error(not_comparable) if it is no self-contained engine library with a manifest,
// Error(storage) if the copy cannot be written, or if the copy already stored was damaged: that one is then set aside as
// <sha256>.so.damaged and a good one put in its place, so that asking again succeeds.
[[nodiscard]] Artifact register_artifact(const std::filesystem::path& library, const std::filesystem::path& store_dir);

// Makes `to` a byte copy under its own inode, read-only, replacing what is there: the loader gives one handle for one inode, so
// a control arm made by linking would be the base itself. Throws Error(usage) if `from` cannot be read, Error(storage).
void make_byte_copy(const std::filesystem::path& from, const std::filesystem::path& to);

// Hashes the stored copy again. Throws Error(storage) with the expected and the found hash if it changed or is gone.
void verify_unchanged(const Artifact& artifact);

}  // namespace kestrel
