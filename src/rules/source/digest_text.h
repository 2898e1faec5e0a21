// Names a text by its digest: 32 hexadecimal digits. Distinguishes texts, keeps no secret.
#pragma once

#include <string>
#include <string_view>

namespace sluice::rules {

[[nodiscard]] std::string digest_text(std::string_view text);

}  // namespace sluice::rules
