// What tests of TLS share: an authority, a server, a client that believes it, both ends of a
// connection.
#pragma once

#include "net/net_fixture.h"
#include "net/tls_client.h"
#include "net/tls_server.h"
#include "support/certificates.h"
#include "support/temp_folder.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

namespace sluice::net::testing {

using ServerPtr = std::shared_ptr<const TlsServer>;
using ClientPtr = std::shared_ptr<const TlsClient>;

inline CertificateFiles files(const sluice::testing::IssuedCertificate& issued) {
  return {issued.chain, issued.key};
}

class TlsFixture : public ::testing::Test {
 protected:
  sluice::testing::TempFolder folder_;
  sluice::testing::Authority authority_{folder_, "authority"};
  sluice::testing::IssuedCertificate example_ =
      authority_.issue("example", {.common_name = "example", .names = {"DNS:example.com"}});

  [[nodiscard]] TlsServerOptions server_options() const {
    return {.certificates = {files(example_)}};
  }
  [[nodiscard]] TlsClientOptions client_options() const { return {.ca_file = authority_.file()}; }
  static ServerPtr server(const TlsServerOptions& options) {
    return TlsServer::load(options).value();
  }
  static ClientPtr client(const TlsClientOptions& options) {
    return TlsClient::load(options).value();
  }
  [[nodiscard]] ServerPtr server() const { return server(server_options()); }
  [[nodiscard]] ClientPtr client() const { return client(client_options()); }
};

// Both ends of a connection under TLS, and the handshake gone as far as it goes.
struct TlsConnection {
  Loop loop;
  Talker client{*loop};
  Talker server{*loop};

  TlsConnection(ServerPtr with, const ClientPtr& as, const std::string& host = "example.com",
                Pair pair = connected_pair()) {
    server.open(std::move(pair.server));
    client.open(std::move(pair.client));
    if (!server.stream.start_tls(std::move(with))) std::abort();
    if (!client.stream.start_tls(*as, host)) std::abort();
    client.talk();
    (void)loop.until([&] {
      return (client.established || client.is_over()) && (server.established || server.is_over());
    });
  }
  [[nodiscard]] bool stands() const {
    return client.established && server.established && !client.failure && !server.failure;
  }
  [[nodiscard]] std::string client_failure() const {
    return client.failure ? client.failure->text() : "none";
  }
  [[nodiscard]] std::string server_failure() const {
    return server.failure ? server.failure->text() : "none";
  }
};

}  // namespace sluice::net::testing
