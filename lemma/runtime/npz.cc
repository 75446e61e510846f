#include <minizip/unzip.h>
#include <minizip/zip.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "lemma/runtime/npy.h"

namespace lemma::runtime {
namespace {

using base::Result;

struct Archive {
  unzFile file = nullptr;
  explicit Archive(const std::string& path) : file(unzOpen64(path.c_str())) {}
  ~Archive() {
    if (file) unzClose(file);
  }
  Archive(const Archive&) = delete;
  Archive& operator=(const Archive&) = delete;
};

Result<std::shared_ptr<Archive>> open_archive(const std::string& path) {
  LEMMA_TRY(const Bytes probe, file_source(path));  // says why a file cannot be opened
  auto archive = std::make_shared<Archive>(path);
  if (!archive->file) return base::invalid("'" + path + "' is not a .npz archive");
  return archive;
}

struct Member {
  std::string name;  // without ".npy"
  unz_file_info64 info{};
};

Result<Member> current_member(unzFile file, const std::string& path) {
  Member member;
  std::string name(256, '\0');
  if (unzGetCurrentFileInfo64(file, &member.info, name.data(), uLong(name.size() - 1), nullptr, 0, nullptr, 0) !=
      UNZ_OK) {
    return base::invalid("the directory of '" + path + "' is damaged");
  }
  member.name = name.c_str();
  if (member.name.ends_with(".npy")) member.name.resize(member.name.size() - 4);
  return member;
}

// Moves through the members until `found` says so.
template <class Found>
Result<bool> seek(unzFile file, const std::string& path, Found found) {
  int code = unzGoToFirstFile(file);
  // The count guards against a directory that leads back into itself.
  unz_global_info64 global{};
  if (unzGetGlobalInfo64(file, &global) != UNZ_OK) return base::invalid("the directory of '" + path + "' is damaged");
  for (uint64_t i = 0; code == UNZ_OK && i < global.number_entry; ++i) {
    LEMMA_TRY(const Member member, current_member(file, path));
    if (found(member)) return true;
    code = unzGoToNextFile(file);
  }
  if (code != UNZ_OK && code != UNZ_END_OF_LIST_OF_FILE) {
    return base::invalid("the directory of '" + path + "' is damaged");
  }
  return false;
}

Bytes member_source(std::shared_ptr<Archive> archive, const Member& member, const std::string& path) {
  Bytes source;
  source.name = path + ":" + member.name;
  struct stat status {};
  const int64_t file_size = stat(path.c_str(), &status) == 0 ? int64_t(status.st_size) : 0;
  const int64_t packed = std::min<int64_t>(int64_t(std::min<uint64_t>(member.info.compressed_size, INT64_MAX)),
                                           file_size);
  source.limit = std::min<int64_t>(int64_t(std::min<uint64_t>(member.info.uncompressed_size, INT64_MAX)),
                                   packed * 1032 + 1024);
  source.read = [archive, name = source.name](std::span<std::byte> into) -> Result<int64_t> {
    size_t done = 0;
    while (done < into.size()) {
      const unsigned ask = unsigned(std::min<size_t>(into.size() - done, size_t(1) << 30));
      const int n = unzReadCurrentFile(archive->file, into.data() + done, ask);
      if (n < 0) return base::invalid("'" + name + "' is damaged: it cannot be decompressed");
      if (n == 0) break;
      done += size_t(n);
    }
    return int64_t(done);
  };
  return source;
}

// A zip archive under way; the file is removed unless it is finished.
struct Writing {
  std::string path;
  zipFile file = nullptr;
  ~Writing() {
    if (file) zipClose(file, nullptr);
    if (!path.empty()) unlink(path.c_str());
  }
};

Result<void> add_member(zipFile file, const Named& named, const std::string& path) {
  const auto failed = [&] { return base::system_failure("cannot write '" + path + "': " + std::strerror(errno)); };
  LEMMA_TRY(Array plain, contiguous(named.array));
  if (scalar::bits(plain.type) < 8) {
    LEMMA_TRY(plain, convert(plain, plain.type == scalar::DType::I4 ? scalar::DType::I8 : scalar::DType::U8));
  }
  const std::string header = npy_header(plain.type, plain.extents);
  zip_fileinfo info{};
  info.tmz_date.tm_year = 1980;  // same input, same bytes
  info.tmz_date.tm_mday = 1;
  const int64_t bytes = plain.bytes();
  const int large = bytes > (int64_t(1) << 31) ? 1 : 0;
  if (zipOpenNewFileInZip64(file, (named.name + ".npy").c_str(), &info, nullptr, 0, nullptr, 0, nullptr, Z_DEFLATED,
                            1, large) != ZIP_OK) {
    return failed();
  }
  if (zipWriteInFileInZip(file, header.data(), unsigned(header.size())) != ZIP_OK) return failed();
  for (int64_t done = 0; done < bytes;) {
    const unsigned n = unsigned(std::min<int64_t>(bytes - done, int64_t(1) << 28));
    if (zipWriteInFileInZip(file, plain.data() + done, n) != ZIP_OK) return failed();
    done += n;
  }
  if (zipCloseFileInZip(file) != ZIP_OK) return failed();
  return {};
}

}  // namespace

Result<std::vector<std::string>> list_npz(const std::string& path) {
  LEMMA_TRY(const std::shared_ptr<Archive> archive, open_archive(path));
  std::vector<std::string> names;
  LEMMA_TRY(const bool stopped, seek(archive->file, path, [&](const Member& member) {
              names.push_back(member.name);
              return false;
            }));
  (void)stopped;
  return names;
}

Result<Array> read_npz(const std::string& path, const std::string& wanted, std::optional<scalar::DType> expected) {
  LEMMA_TRY(const std::shared_ptr<Archive> archive, open_archive(path));
  Member chosen;
  LEMMA_TRY(const std::vector<std::string> names, list_npz(path));
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
  if (wanted.empty() && names.size() != 1) {
    return base::invalid("'" + path + "' holds " + std::to_string(names.size()) + " arrays: " + all, {},
                         "name one: " + path + "@name");
  }
  LEMMA_TRY(const bool found, seek(archive->file, path, [&](const Member& member) {
              chosen = member;
              return wanted.empty() || member.name == wanted;
            }));
  if (!found) return base::invalid("'" + path + "' has no array '" + wanted + "'; it holds " + all);
  if ((chosen.info.flag & 1) != 0) return base::unsupported("'" + path + ":" + chosen.name + "' is encrypted");
  if (unzOpenCurrentFile(archive->file) != UNZ_OK) {
    return base::invalid("'" + path + ":" + chosen.name + "' is damaged, or compressed by a method other than deflate");
  }
  LEMMA_TRY(Array array, read_npy(member_source(archive, chosen, path), expected));
  if (unzCloseCurrentFile(archive->file) != UNZ_OK) {
    return base::invalid("'" + path + ":" + chosen.name + "' is damaged: its checksum does not match");
  }
  return array;
}

Result<void> write_npz(const std::string& path, const std::vector<Named>& arrays) {
  Writing out;
  out.path = path + "." + std::to_string(getpid()) + ".partial";
  out.file = zipOpen64(out.path.c_str(), APPEND_STATUS_CREATE);
  const auto failed = [&] { return base::system_failure("cannot write '" + path + "': " + std::strerror(errno)); };
  if (!out.file) return failed();
  for (const Named& named : arrays) LEMMA_TRY_VOID(add_member(out.file, named, path));
  const int closed = zipClose(out.file, nullptr);
  out.file = nullptr;
  const int fd = open(out.path.c_str(), O_RDONLY | O_CLOEXEC);
  const bool flushed = closed == ZIP_OK && fd >= 0 && fsync(fd) == 0;
  if (fd >= 0) close(fd);
  if (!flushed || rename(out.path.c_str(), path.c_str()) != 0) return failed();
  out.path.clear();
  return {};
}

}  // namespace lemma::runtime
