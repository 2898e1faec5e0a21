// Objects of OpenSSL with one owner.
#pragma once

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/params.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <memory>

namespace sluice::crypto {

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
using OwnedContext = Owned<SSL_CTX, SSL_CTX_free>;
using OwnedDigestContext = Owned<EVP_MD_CTX, EVP_MD_CTX_free>;
using OwnedKey = Owned<EVP_PKEY, EVP_PKEY_free>;
using OwnedKeyContext = Owned<EVP_PKEY_CTX, EVP_PKEY_CTX_free>;
using OwnedNumber = Owned<BIGNUM, BN_free>;
using OwnedParamBuilder = Owned<OSSL_PARAM_BLD, OSSL_PARAM_BLD_free>;
using OwnedParams = Owned<OSSL_PARAM, OSSL_PARAM_free>;
using OwnedSignature = Owned<ECDSA_SIG, ECDSA_SIG_free>;
using OwnedSsl = Owned<SSL, SSL_free>;

}  // namespace sluice::crypto
