// A file of API keys of arbitrary bytes is read, or refused with reasons that show none of it.
//
// What is accepted are keys that the server can use. Written anew it reads the same, and one key
// more changes none of the others.

#include "embed/config/api_key_file.h"
#include "fuzz.h"

#include <algorithm>
#include <string>
#include <vector>

namespace {

using sluice::config::Diagnostics;
using sluice::embed::read_api_keys;
using sluice::fuzz::expect;
using sluice::identity::ApiKeyRecord;

bool equal(const ApiKeyRecord& a, const ApiKeyRecord& b) {
  const auto sorted = [](auto attributes) {
    std::sort(attributes.begin(), attributes.end());
    return attributes;
  };
  return a.name == b.name && a.hash == b.hash && a.user == b.user && a.tenant == b.tenant &&
         a.tier == b.tier && a.expires == b.expires && sorted(a.attributes) == sorted(b.attributes);
}

bool reads_as(const std::string& text, const std::vector<ApiKeyRecord>& wanted) {
  Diagnostics diagnostics;
  return std::ranges::equal(read_api_keys(text, "again", diagnostics), wanted, equal) &&
         diagnostics.ok();
}

void check_mistakes(const Diagnostics& diagnostics) {
  for (const auto& mistake : diagnostics.sorted()) {
    expect(!mistake.message.empty(), "a mistake has a message");
    expect(mistake.line.empty() && mistake.offending.empty(),
           "a mistake shows nothing of the file");
  }
}

void check_addition(const std::string& text, std::vector<ApiKeyRecord> records) {
  ApiKeyRecord record;
  record.name = "one more";
  record.hash = sluice::identity::hash_api_key("one more");
  record.tier = "no";
  const auto longer = sluice::embed::with_api_key(text, "fuzz", record);
  if (!longer) return;
  records.push_back(record);
  expect(reads_as(*longer, records), "a file with one key more has one key more");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text{data, data + size};
  Diagnostics diagnostics;
  const std::vector<ApiKeyRecord> records = read_api_keys(text, "fuzz", diagnostics);
  check_mistakes(diagnostics);
  if (!diagnostics.ok()) {
    expect(!diagnostics.text().empty(), "mistakes can be shown");
    return 0;
  }
  expect(sluice::identity::ApiKeys::create(records, "a secret of 16 bytes or more").has_value(),
         "what is accepted can be used");
  expect(reads_as(sluice::embed::key_file_text(records), records), "keys survive being written");
  check_addition(text, records);
  return 0;
}
