"""TLS to a server that others have written, and every reason not to believe it."""

import os
import unittest

from gateway_support import Authority, Upstream, wait_until
from nginx_support import NginxTest


class PlainUpstream(Upstream):
    """Takes a handshake for a request, as servers without TLS do."""

    def connected(self, wire, number):
        wire.more()
        wire.send(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")


class TlsUpstreams(NginxTest):
    def setUp(self):
        super().setUp()
        self.authority = Authority(self.folder, "authority")

    def trusted_nginx(self, certificate):
        path = os.path.join(self.folder, "socket")
        self.nginx(
            f"""
            server {{
              listen unix:{path} ssl;
              ssl_certificate {certificate}.pem; ssl_certificate_key {certificate}.key;
              location / {{ return 200 "$ssl_server_name $http_host"; }}
            }}""",
            lambda: os.path.exists(path),
        )
        return f"unix:{path}"

    def front(self, certificate, tls="{ca_file: authority.pem}", host="app.example"):
        return self.gateway(
            self.trusted_nginx(certificate),
            of_upstream=f"host_header: {host}, tls: {tls}, retries: 0",
            more="access_log: {file: access.log}",
        )

    def test_the_right_name_is_asked_for_and_believed(self):
        front = self.front(self.authority.issue("app", "app", "DNS:app.example"))
        for _ in range(3):
            answer = front.get()
            self.assertEqual((answer.status, answer.body), (200, b"app.example app.example"))

    # Certificates are verified against `tls.server_name`; the Host header stays `host_header`.
    def test_a_name_for_tls_that_is_not_the_host(self):
        tls = "{ca_file: authority.pem, server_name: tls.example}"
        good = self.front(self.authority.issue("app", "app", "DNS:tls.example"), tls)
        answer = good.get()
        self.assertEqual((answer.status, answer.body), (200, b"tls.example app.example"))

    def test_the_host_is_not_enough_where_tls_has_a_name_of_its_own(self):
        tls = "{ca_file: authority.pem, server_name: tls.example}"
        front = self.front(self.authority.issue("app", "app", "DNS:app.example"), tls)
        self.distrusts(front, "hostname mismatch")

    def distrusts(self, front, why):
        answer = front.get()
        self.assertProblem(answer, 502)
        self.assertIn(b"cannot be trusted", answer.body)
        self.assertNotIn(b"certificate", answer.body)  # which concerns the operator alone
        wait_until(lambda: why in self.log(), f"the log says {why!r}: {self.log()}")
        self.assertIn("the server cannot be trusted", self.log())
        front.says(why)

    def test_another_name(self):
        front = self.front(self.authority.issue("app", "app", "DNS:other.example"))
        self.distrusts(front, "hostname mismatch")

    # The common name was for that once, and is no more.
    def test_a_name_in_the_subject_alone(self):
        front = self.front(self.authority.issue("app", "app.example", "DNS:other.example"))
        self.distrusts(front, "hostname mismatch")

    def test_an_authority_that_nobody_knows(self):
        stranger = Authority(self.folder, "stranger")
        front = self.front(stranger.issue("app", "app", "DNS:app.example"))
        self.distrusts(front, "unable to get local issuer certificate")

    def test_the_authorities_of_the_system_do_not_know_ours(self):
        front = self.front(self.authority.issue("app", "app", "DNS:app.example"), tls="true")
        self.distrusts(front, "unable to get local issuer certificate")

    def test_one_that_has_expired(self):
        front = self.front(self.authority.issue("app", "app", "DNS:app.example", days=-1))
        self.distrusts(front, "certificate has expired")

    def test_nothing_is_checked_where_that_is_wanted(self):
        front = self.front(
            self.authority.issue("app", "app", "DNS:other.example"), tls="{verify: false}"
        )
        self.assertEqual(front.get().status, 200)

    def test_a_server_that_does_not_speak_tls(self):
        app = self.upstream(kind=PlainUpstream)
        front = self.gateway(
            app, of_upstream="tls: {ca_file: authority.pem}", more="access_log: {file: access.log}"
        )
        self.assertProblem(front.get(), 502)
        wait_until(lambda: "the server cannot be reached: " in self.log(), "the log says why")


if __name__ == "__main__":
    unittest.main()
