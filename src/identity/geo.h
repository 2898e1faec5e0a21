// Country and network of an address, from databases in MaxMind's format.
//
// The files are mapped into memory; a lookup walks a tree in there, without a lock or an
// allocation. The texts it returns live as long as the object. A reload is a new object. Immutable,
// so threads may share it.
#pragma once

#include <sluice/address.h>
#include <sluice/diagnostic.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace sluice::identity {

struct GeoAnswer {
  std::string_view country;  // two letters; empty: unknown
  std::uint32_t asn = 0;     // 0: unknown
};

class Geo {
 public:
  // Either path may be empty, not both. One file may hold both kinds of data: give it twice.
  struct Files {
    std::string country_file;
    std::string asn_file;
  };
  [[nodiscard]] static Parsed<Geo> open(const Files& files);

  [[nodiscard]] GeoAnswer find(const IpAddress& address) const noexcept;

 private:
  struct Database;
  struct Close {
    void operator()(Database* database) const noexcept;
  };
  using Opened = std::unique_ptr<Database, Close>;
  [[nodiscard]] static Parsed<Opened> open_one(const std::string& path);

  Opened country_;
  Opened asn_;
};

}  // namespace sluice::identity
