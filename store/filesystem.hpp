// Where a database may live.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace kestrel {

// The name of the network filesystem with this statfs magic number ("NFS", ...), or "" if it is not one known. A FUSE
// filesystem is judged by its mount type ("fuse.sshfs"), because local ones share the magic number.
[[nodiscard]] std::string_view network_filesystem_name(std::uint64_t magic, std::string_view fuse_type);

// Throws Error(storage) if the directory that holds `file`, or its nearest existing parent, is on a network filesystem:
// locks and shared memory are not dependable there, and both SQLite's WAL mode and our durability rest on them.
void refuse_network_filesystem(const std::filesystem::path& file);

// Creates the directory that is to hold `file`, private to the user. Throws Error(storage) with the reason.
void create_parent_directory(const std::filesystem::path& file);

}  // namespace kestrel
