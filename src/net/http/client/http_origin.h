// Where requests go, and how the server there proves who it is.
#pragma once

#include "net/http/client/http_url.h"
#include "net/tls_client.h"
#include <sluice/diagnostic.h>

#include <memory>
#include <string>

namespace sluice::net {

struct HttpOrigin {
  HttpUrl url;                           // of which the path is not used
  std::shared_ptr<const TlsClient> tls;  // of https: which CAs are trusted, and our certificate
  std::string server_name;               // that the certificate has to bear, if not the URL's host

  // Loads what TLS needs, where the URL is one of https.
  [[nodiscard]] static Parsed<HttpOrigin> load(HttpUrl url, const TlsClientOptions& tls = {},
                                               std::string server_name = {});
};

}  // namespace sluice::net
