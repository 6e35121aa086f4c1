#include "store/filesystem.hpp"

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include <array>
#include <fstream>
#include <sstream>
#include <utility>

#include "runner/record/error.hpp"

namespace kestrel {
namespace {

constexpr std::uint64_t fuse_magic = 0x65735546;

// 9P is not here: the root of a sandbox or a virtual machine is often 9P and local to its host. Where shared memory does not
// work on it, SQLite refuses WAL mode and that is reported.
constexpr std::array<std::pair<std::uint64_t, std::string_view>, 13> network_magics{{
    {0x6969, "NFS"},
    {0x517B, "SMB"},
    {0xFF534D42, "CIFS"},
    {0xFE534D42, "SMB2"},
    {0x5346414F, "AFS"},
    {0x6B414653, "AFS"},
    {0x73757245, "Coda"},
    {0x564C, "NCP"},
    {0x00C36400, "Ceph"},
    {0x0BD00BD0, "Lustre"},
    {0x47504653, "GPFS"},
    {0x19830326, "BeeGFS"},
    {0xAAD7AAEA, "PanFS"},
}};

constexpr std::array<std::string_view, 11> network_fuse_types{"fuse.sshfs",    "fuse.rclone",    "fuse.s3fs",      "fuse.gcsfuse",
                                                              "fuse.goofys",   "fuse.glusterfs", "fuse.ceph-fuse", "fuse.curlftpfs",
                                                              "fuse.mount-s3", "fuse.juicefs",   "fuse.davfs"};

// The mount type of the filesystem with this device number, from the kernel's list of mounts; "" if not found.
std::string mount_type(dev_t device) {
    const std::string wanted = std::to_string(major(device)) + ":" + std::to_string(minor(device));
    std::ifstream mounts("/proc/self/mountinfo");
    for (std::string line; std::getline(mounts, line);) {
        std::istringstream words(line);
        std::string id, parent, number, word;
        words >> id >> parent >> number;
        if (number != wanted) continue;
        while (words >> word && word != "-") {
        }
        words >> word;
        return word;
    }
    return "";
}

std::filesystem::path nearest_existing_directory(const std::filesystem::path& file) {
    std::error_code ignored;
    std::filesystem::path directory = std::filesystem::absolute(file, ignored).parent_path();
    while (!std::filesystem::exists(directory, ignored) && directory.has_relative_path()) directory = directory.parent_path();
    return directory;
}

}  // namespace

std::string_view network_filesystem_name(std::uint64_t magic, std::string_view fuse_type) {
    for (const auto& [number, name] : network_magics) {
        if (number == magic) return name;
    }
    if (magic == fuse_magic) {
        for (const auto type : network_fuse_types) {
            if (type == fuse_type) return type;
        }
    }
    return "";
}

void refuse_network_filesystem(const std::filesystem::path& file) {
    const std::filesystem::path directory = nearest_existing_directory(file);
    struct statfs facts {};
    if (statfs(directory.c_str(), &facts) != 0) return;  // opening the file will say what is wrong
    const auto magic = static_cast<std::uint64_t>(static_cast<std::uint32_t>(facts.f_type));
    std::string fuse_type;
    struct stat status {};
    if (magic == fuse_magic && stat(directory.c_str(), &status) == 0) fuse_type = mount_type(status.st_dev);
    const std::string_view name = network_filesystem_name(magic, fuse_type);
    if (name.empty()) return;
    throw Error(ExitCode::storage, "the database " + file.string() + " would be on a network filesystem (" + std::string(name) +
                                       "), where locks do not protect it; name a file on a local disk with --db or KESTREL_AB_DB");
}

void create_parent_directory(const std::filesystem::path& file) {
    std::error_code problem;
    const std::filesystem::path directory = std::filesystem::absolute(file, problem).parent_path();
    if (std::filesystem::is_directory(directory, problem)) return;
    std::filesystem::create_directories(directory, problem);
    if (!problem) {
        std::filesystem::permissions(directory, std::filesystem::perms::owner_all, problem);
        if (!problem) return;
    }
    throw Error(ExitCode::storage, "cannot create the directory " + directory.string() + " for the database: " + problem.message() +
                                       "; create it, or name another file with --db or KESTREL_AB_DB");
}

}  // namespace kestrel
