#include "identity/geo.h"

#include "base/mapped_files.h"
#include "base/text.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <maxminddb.h>
#include <netinet/in.h>
#include <optional>
#include <span>
#include <sys/socket.h>

namespace sluice::identity {
namespace {

constexpr std::array<const char*, 3> kCountry{"country", "iso_code", nullptr};
constexpr std::array<const char*, 2> kAsn{"autonomous_system_number", nullptr};

// IPv4 as such: the library finds it in a tree of IPv6 by itself.
std::optional<MMDB_entry_s> entry_of(const MMDB_s& database, const IpAddress& address) noexcept {
  sockaddr_in v4{};
  sockaddr_in6 v6{};
  const sockaddr* socket_address = nullptr;
  if (address.is_v4) {
    v4.sin_family = AF_INET;
    std::memcpy(&v4.sin_addr, address.bytes.data(), sizeof(v4.sin_addr));
    socket_address = reinterpret_cast<const sockaddr*>(&v4);
  } else {
    v6.sin6_family = AF_INET6;
    std::memcpy(&v6.sin6_addr, address.bytes.data(), sizeof(v6.sin6_addr));
    socket_address = reinterpret_cast<const sockaddr*>(&v6);
  }
  int error = MMDB_SUCCESS;
  const MMDB_lookup_result_s result = MMDB_lookup_sockaddr(&database, socket_address, &error);
  if (error != MMDB_SUCCESS || !result.found_entry) return std::nullopt;
  return result.entry;
}

// MMDB_aget_value, because MMDB_get_value allocates. Nothing also where the file is damaged.
std::optional<MMDB_entry_data_s> value_at(MMDB_entry_s entry, const char* const* path) noexcept {
  MMDB_entry_data_s data{};
  if (MMDB_aget_value(&entry, &data, path) != MMDB_SUCCESS || !data.has_data) return std::nullopt;
  return data;
}

std::string_view country_of(const MMDB_s& database, const IpAddress& address) noexcept {
  const std::optional<MMDB_entry_s> entry = entry_of(database, address);
  if (!entry) return {};
  const std::optional<MMDB_entry_data_s> data = value_at(*entry, kCountry.data());
  constexpr std::uint32_t kLetters = 2;
  if (!data || data->type != MMDB_DATA_TYPE_UTF8_STRING || data->data_size != kLetters) return {};
  return {data->utf8_string, data->data_size};
}

std::uint32_t asn_of(const MMDB_s& database, const IpAddress& address) noexcept {
  const std::optional<MMDB_entry_s> entry = entry_of(database, address);
  if (!entry) return 0;
  const std::optional<MMDB_entry_data_s> data = value_at(*entry, kAsn.data());
  if (!data) return 0;
  if (data->type == MMDB_DATA_TYPE_UINT32) return data->uint32;
  return data->type == MMDB_DATA_TYPE_UINT16 ? data->uint16 : 0;
}

std::span<const std::byte> content_of(const MMDB_s& file) noexcept {
  return std::as_bytes(std::span{file.file_content, static_cast<std::size_t>(file.file_size)});
}

}  // namespace

struct Geo::Database {
  MMDB_s file{};
};

void Geo::Close::operator()(Database* database) const noexcept {
  forget_mapped_file(content_of(database->file));
  MMDB_close(&database->file);
  delete database;
}

Parsed<Geo::Opened> Geo::open_one(const std::string& path) {
  if (path.empty()) return Opened{};
  // Closed only if it was opened.
  auto plain = std::make_unique<Database>();
  const int status = MMDB_open(path.c_str(), MMDB_MODE_MMAP, &plain->file);
  if (status == MMDB_SUCCESS) {
    remember_mapped_file(content_of(plain->file),
                         {.what = "GeoIP database",
                          .path = path,
                          .remedy = "replace such files by renaming a new one over them"});
    return Opened{plain.release()};
  }
  if (status == MMDB_FILE_OPEN_ERROR) {
    return mistake("cannot open the GeoIP database " + quoted(path),
                   "check the path and its permissions");
  }
  return mistake(quoted(path) + " is no GeoIP database: " + MMDB_strerror(status),
                 "fetch the file again; it ends in .mmdb and is not compressed");
}

Parsed<Geo> Geo::open(const Files& files) {
  if (files.country_file.empty() && files.asn_file.empty()) {
    return mistake("no GeoIP database is named", "give one for countries, networks or both");
  }
  Parsed<Opened> country = open_one(files.country_file);
  if (!country) return tl::unexpected(std::move(country.error()));
  Parsed<Opened> asn = open_one(files.asn_file);
  if (!asn) return tl::unexpected(std::move(asn.error()));
  Geo geo;
  geo.country_ = std::move(*country);
  geo.asn_ = std::move(*asn);
  return geo;
}

GeoAnswer Geo::find(const IpAddress& address) const noexcept {
  GeoAnswer answer;
  if (country_ != nullptr) answer.country = country_of(country_->file, address);
  if (asn_ != nullptr) answer.asn = asn_of(asn_->file, address);
  return answer;
}

}  // namespace sluice::identity
