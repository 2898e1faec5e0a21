// A front end for a test: one line of text for every connection.
//
//     listen: {line: 127.0.0.1:7000}
//     line: {text_file: line.txt, max_connections: 10}
#pragma once

#include "frontend/frontend.h"

namespace sluice::line {

[[nodiscard]] const frontend::FrontendKind& kind();

}  // namespace sluice::line
