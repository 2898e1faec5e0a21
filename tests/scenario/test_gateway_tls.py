"""Clients that come by TLS."""

import os
import signal
import socket
import ssl
import subprocess
import time
import unittest

from gateway_support import Client, Upstream, get, post, reply, wait_until
from launch_support import LaunchTest


class CountsHeads(Upstream):
    """Knows of a request before its body comes."""

    heads = 0
    answer_bytes = 0

    def connected(self, wire, number):
        while True:
            request = wire.head()
            self.heads += 1
            wire.body(request)
            wire.send(reply(b"a" * self.answer_bytes))


class ClientsOverTls(LaunchTest):
    def certificate(self, name, host):
        path = os.path.join(self.folder, name)
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
            + ["-nodes", "-days", "2", "-subj", f"/CN={host}"]
            + ["-addext", f"subjectAltName=DNS:{host}"]
            + ["-keyout", path + ".key", "-out", path + ".pem"],
            check=True,
            capture_output=True,
        )
        return path + ".pem"

    def connect(self, front, host, authority, receive_buffer=0):
        context = ssl.create_default_context(cafile=authority)
        plain = front.connect(receive_buffer).sock
        return Client(context.wrap_socket(plain, server_hostname=host))

    def test_each_name_has_its_certificate_and_a_new_one_is_taken_over(self):
        a, b = self.certificate("a", "a.example"), self.certificate("b", "b.example")
        certificates = "{cert_file: a.pem, key_file: a.key}, {cert_file: b.pem, key_file: b.key}"
        app = self.upstream(lambda request, wire: wire.send(reply(request.body)) or True)
        front = self.gateway(app, more=f"gateway: {{tls: {{certificates: [{certificates}]}}}}")
        body = os.urandom(3 << 20)
        with self.connect(front, "a.example", a) as first, self.connect(front, "b.example", b):
            self.assertTrue(first.ask(post(body)).body == body)
            self.assertEqual(app.requests[0].get("x-forwarded-proto"), "https")
            new = self.certificate("a", "a.example")
            front.signal(signal.SIGHUP)
            front.says("configuration reloaded")
            self.assertEqual(first.get().status, 200)  # those that stand are left alone
        with self.connect(front, "a.example", new) as client:
            self.assertEqual(client.get().status, 200)

    # Of a.example.
    ONE_NAME = "tls: {certificates: [{cert_file: a.pem, key_file: a.key}]}"

    # Who had come before the end may still ask, but is not waited for as long as on other days.
    def test_a_handshake_that_ends_while_draining_keeps_nobody_waiting(self):
        trusted = self.certificate("a", "a.example")
        more = f"gateway: {{{self.ONE_NAME}, header_timeout: 1m}}"
        front = self.gateway(self.upstream(), more=more)
        came = [socket.create_connection(("127.0.0.1", front.port)) for _ in range(2)]
        wait_until(lambda: len(front.connections()) == 2, "both have come")
        front.signal(signal.SIGTERM)
        front.says("draining")
        context = ssl.create_default_context(cafile=trusted)
        begin = time.monotonic()
        asks, waits = (
            Client(context.wrap_socket(plain, server_hostname="a.example")) for plain in came
        )
        with asks, waits:
            answer = asks.get()
            self.assertEqual((answer.status, answer.get("connection")), (200, "close"))
            self.assertTrue(waits.is_closed())
        self.assertEqual(front.wait(), 0)
        self.assertLess(time.monotonic() - begin, 20)

    def test_plain_requests_to_a_tls_port_are_no_handshake(self):
        self.certificate("a", "a.example")
        front = self.gateway(self.upstream(), more=f"gateway: {{{self.ONE_NAME}}}")
        with front.connect() as client:
            client.send(get())
            while not client.is_closed():
                pass
            self.assertNotIn(b"HTTP/1.1 200", client.pending)

    # Whether nothing comes, or the beginning of a handshake and then nothing.
    def test_a_handshake_that_does_not_come(self):
        self.certificate("a", "a.example")
        more = f"gateway: {{{self.ONE_NAME}, header_timeout: 300ms}}"
        front = self.gateway(self.upstream(), more=more)
        for beginning in (b"", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"):
            with front.connect() as client:
                begin = time.monotonic()
                client.send(beginning)
                self.assertTrue(client.is_closed())
                # The wheel of timers may be a tick early or late, and so may the clocks.
                self.assertGreaterEqual(time.monotonic() - begin, 0.27)

    # Where the client reads nothing there may be no room even for a 100 Continue, and TLS cannot
    # take back what it was given: whatever followed would lose its beginning.
    def test_nothing_follows_a_continue_that_did_not_go_out(self):
        trusted = self.certificate("a", "a.example")
        app = self.upstream(kind=CountsHeads)
        listener, address = self.bound()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)  # as little as there can be
        more = f"gateway: {{{self.ONE_NAME}}}"
        front = self.launch(listener, self.configuration(app, listen=address, more=more))
        for answer_bytes in range(0, 600, 3):
            app.answer_bytes = answer_bytes
            with self.connect(front, "a.example", trusted, receive_buffer=1) as client:
                if self.fill(client, front, app):
                    return self.assertEqual(self.rest(client), ["100", "200"])
        self.fail("there was room for every 100 Continue")

    def fill(self, client, front, app):
        """Asks until the gateway leaves; false where it waits for room for an answer instead."""
        while True:
            goal = app.heads + 1
            client.send(get("/", "Content-Length: 1", "Expect: 100-continue", method="POST"))
            try:
                wait_until(lambda: app.heads == goal, "the upstream is asked", seconds=0.3)
            except AssertionError:
                return not front.connections()
            client.send(b"x")

    def rest(self, client):
        """The kinds of messages that came; what is no whole message is an error."""
        kinds = set()
        try:
            while True:
                message = client.head()
                kinds.add(message.start.split(" ")[1])
                client.body(message)
        except (EOFError, OSError):
            return sorted(kinds)


if __name__ == "__main__":
    unittest.main()
