// Objects of OpenSSL with one owner.
#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <memory>

namespace sluice::net {

template <auto Function>
struct FreeBy {
  template <class T>
  void operator()(T* pointer) const noexcept {
    Function(pointer);
  }
};
template <class T, auto Function>
using Owned = std::unique_ptr<T, FreeBy<Function>>;

using OwnedBio = Owned<BIO, BIO_free>;
using OwnedCertificate = Owned<X509, X509_free>;
using OwnedKey = Owned<EVP_PKEY, EVP_PKEY_free>;
using OwnedContext = Owned<SSL_CTX, SSL_CTX_free>;
using OwnedSsl = Owned<SSL, SSL_free>;

}  // namespace sluice::net
