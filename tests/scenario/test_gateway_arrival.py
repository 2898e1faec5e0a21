"""Before the first request: whom a load balancer speaks for, certificates, inherited sockets."""

import socket
import ssl
import struct
import threading
import unittest

from gateway_support import (
    PATIENCE,
    Authority,
    Client,
    GatewayTest,
    get,
    wait_until,
)
from launch_support import LaunchTest
from support import sluice

SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"


def version_2(source, port=4711, to_port=443, more=b"", command=0x21):
    body = socket.inet_aton(source) + socket.inet_aton("198.51.100.1")
    body += struct.pack("!HH", port, to_port) + more
    return SIGNATURE + struct.pack("!BBH", command, 0x11, len(body)) + body


ANNOUNCED = "{address: '127.0.0.1:0', proxy_protocol: true}"


class ProxyProtocol(GatewayTest):
    TRUSTED = "clients: {trusted_proxies: [127.0.0.0/8]}"

    def announced(self, app, more=TRUSTED, **options):
        return self.gateway(app, more=more, listen=ANNOUNCED, **options)

    def test_servers_limits_and_the_log_see_the_client(self):
        app = self.upstream()
        front = self.announced(
            app,
            rules="[{name: one, per: ip, limit: 1/1h}]",
            more=self.TRUSTED + "\naccess_log: {file: access.log}",
        )
        headers = {
            b"PROXY TCP4 192.0.2.7 198.51.100.1 4711 443\r\n": "192.0.2.7",
            b"PROXY TCP6 2001:db8::7 2001:db8::1 4711 443\r\n": "2001:db8::7",
            version_2("192.0.2.8"): "192.0.2.8",
            version_2("192.0.2.9", more=b"\x04\0\5hello"): "192.0.2.9",
        }
        for header, address in headers.items():
            for status in (200, 429):  # each has a limit of its own
                with front.connect() as client:
                    client.send(header)
                    self.assertEqual(client.get().status, status, address)
            request = app.requests[-1]
            self.assertEqual(request.all("x-forwarded-for"), [address])
            self.assertEqual(request.get("x-forwarded-port"), "443")
            wait_until(lambda: self.log().count(address + " ") == 2, "the log names the client")

    def test_a_header_in_pieces_and_a_request_in_the_same_packet(self):
        front = self.announced(self.upstream())
        for header in (b"PROXY TCP4 192.0.2.7 198.51.100.1 4711 443\r\n", version_2("192.0.2.7")):
            with front.connect() as client:
                client.send(header + get())
                self.assertEqual(client.answer().status, 200)
                self.assertEqual(client.get().status, 200)
            with front.connect() as client:
                for byte in header:
                    client.send(bytes([byte]))
                self.assertEqual(client.get().status, 200)

    # A health check of the load balancer speaks for nobody but itself.
    def test_the_socket_counts_where_the_header_names_nobody(self):
        app = self.upstream()
        front = self.announced(app)
        for header in (b"PROXY UNKNOWN\r\n", version_2("192.0.2.7", command=0x20)):
            with front.connect() as client:
                client.send(header)
                self.assertEqual(client.get().status, 200)
            self.assertEqual(app.requests[-1].all("x-forwarded-for"), ["127.0.0.1"])

    def test_what_is_no_header_closes_the_connection(self):
        app = self.upstream()
        front = self.announced(app)
        for wrong in (
            get(),
            b"PROXY TCP4 192.0.2.7\r\n" + get(),
            b"PROXY TCP4 300.0.2.7 198.51.100.1 4711 443\r\n" + get(),
            b"proxy TCP4 192.0.2.7 198.51.100.1 4711 443\r\n" + get(),
            SIGNATURE + b"\x31\x11\0\x0c" + b"\0" * 12 + get(),
            b"PROXY " + b"x" * 200,
        ):
            with front.connect() as client:
                client.send(wrong)
                self.assertTrue(client.is_closed(), wrong)
        self.assertEqual(app.requests, [])

    def test_a_header_that_does_not_come(self):
        more = self.TRUSTED + "\ngateway: {header_timeout: 200ms}"
        front = self.announced(self.upstream(), more=more)
        for part in (b"", b"PROXY TCP4 ", SIGNATURE):
            with front.connect() as client:
                client.send(part)
                self.assertTrue(client.is_closed(), part)

    def test_strangers_are_not_heard(self):
        app = self.upstream()
        front = self.announced(app, more="clients: {trusted_proxies: [203.0.113.0/24]}")
        with front.connect() as client:
            try:
                client.send(version_2("192.0.2.7") + get())
            except OSError:
                pass
            self.assertTrue(client.is_closed())
        self.assertEqual(app.requests, [])

    # Else one load balancer would have as many as one client may.
    def test_connections_are_counted_by_client(self):
        more = self.TRUSTED + "\ngateway: {max_connections_per_ip: 1}"
        front = self.announced(self.upstream(), workers=1, more=more)
        with front.connect() as first, front.connect() as second, front.connect() as third:
            first.send(version_2("192.0.2.1"))
            self.assertEqual(first.get().status, 200)
            second.send(version_2("192.0.2.2"))
            self.assertEqual(second.get().status, 200)
            try:
                third.send(version_2("192.0.2.1"))
                third.send(get())
            except OSError:
                pass
            self.assertTrue(third.is_closed())

    # Whoever has one address of IPv6 has 2^64 of them.
    def test_connections_are_counted_by_network_in_ipv6(self):
        more = self.TRUSTED + "\ngateway: {max_connections_per_ip: 1}"
        front = self.announced(self.upstream(), workers=1, more=more)
        with front.connect() as first, front.connect() as second, front.connect() as third:
            first.send(b"PROXY TCP6 2001:db8::7 2001:db8::1 4711 443\r\n")
            self.assertEqual(first.get().status, 200)
            second.send(b"PROXY TCP6 2001:db8:0:1::7 2001:db8::1 4711 443\r\n")
            self.assertEqual(second.get().status, 200)
            try:
                third.send(b"PROXY TCP6 2001:db8::8 2001:db8::1 4711 443\r\n" + get())
            except OSError:
                pass
            self.assertTrue(third.is_closed())
            first.close()
            wait_until(lambda: self.is_served(front, "2001:db8::9"), "there is room again")

    def is_served(self, front, address):
        with front.connect() as client:
            try:
                client.send(f"PROXY TCP6 {address} 2001:db8::1 4711 443\r\n".encode())
                return client.get().status == 200
            except (EOFError, ConnectionError):
                return False

    def test_it_needs_somebody_to_trust(self):
        done = sluice("check", self.file("a.yaml", self.configuration("a:1", listen=ANNOUNCED)))
        self.assertNotEqual(done.code, 0)
        self.assertIn("clients.trusted_proxies", done.out + done.err)


class Certificates(GatewayTest):
    """Clients that prove who they are by a certificate."""

    def setUp(self):
        super().setUp()
        self.authority = Authority(self.folder, "authority")
        self.authority.issue("server", "a.example", "DNS:a.example")

    LOG = "access_log: {file: access.log, format: json}"
    ONE_EACH = "[{name: one, per: user, limit: 1/1h}]"

    def front(self, which, more=LOG, rules=ONE_EACH, **options):
        tls = (
            "gateway: {tls: {certificates: [{cert_file: server.pem, key_file: server.key}], "
            f"client_ca_file: authority.pem, client_auth: {which}}}}}"
        )
        self.app = self.upstream()
        return self.gateway(self.app, more=tls + "\n" + more, rules=rules, **options)

    def connect(self, front, certificate=None, before=b""):
        context = ssl.create_default_context(cafile=self.authority.file)
        if certificate:
            context.load_cert_chain(certificate + ".pem", certificate + ".key")
        plain = socket.create_connection(("127.0.0.1", front.port))
        plain.sendall(before)
        try:
            return Client(context.wrap_socket(plain, server_hostname="a.example"))
        except (ssl.SSLError, OSError):
            plain.close()
            raise

    def test_each_subject_is_a_user(self):
        front = self.front("required")
        ann = self.authority.issue("ann", "ann")
        bob = self.authority.issue("bob", "bob")
        for who in (ann, bob):
            for status in (200, 429):
                with self.connect(front, who) as client:
                    self.assertEqual(client.get().status, status)
        wait_until(lambda: self.log().count("\n") == 4, "all is logged")
        self.assertEqual(self.log().count('"user":"CN=ann"'), 2)

    # A certificate without a subject, as services have it.
    def test_an_alternative_name_is_as_good(self):
        front = self.front("required")
        service = self.authority.issue("service", "", "URI:spiffe://acme/billing")
        with self.connect(front, service) as client:
            self.assertEqual(client.get().status, 200)
        wait_until(lambda: '"user":"spiffe://acme/billing"' in self.log(), "it is logged")

    def test_nothing_of_an_unverified_certificate_counts(self):
        stranger = Authority(self.folder, "stranger")
        forged = stranger.issue("forged", "ann")
        for which in ("optional", "required"):
            front = self.front(which)
            with self.assertRaises((ssl.SSLError, OSError, EOFError)):
                with self.connect(front, forged) as client:
                    client.get()  # TLS 1.3 tells only now
            self.assertEqual(self.app.requests, [])

    def test_none_is_enough_only_where_it_is_optional(self):
        front = self.front("optional")
        with self.connect(front) as client:
            self.assertEqual(client.get().status, 200)
        front = self.front("required")
        with self.assertRaises((ssl.SSLError, OSError, EOFError)):
            with self.connect(front) as client:
                client.get()

    # The header of a load balancer stands before the handshake.
    def test_tls_begins_behind_the_proxy_protocol(self):
        front = self.front(
            "optional",
            more="clients: {trusted_proxies: [127.0.0.0/8]}",
            listen=ANNOUNCED,
        )
        with self.connect(front, before=version_2("192.0.2.7")) as client:
            self.assertEqual(client.get().status, 200)
        request = self.app.requests[0]
        self.assertEqual(request.all("x-forwarded-for"), ["192.0.2.7"])
        self.assertEqual(request.get("x-forwarded-proto"), "https")
        self.assertEqual(request.get("x-forwarded-port"), "443")


class Inherited(LaunchTest):
    def test_the_socket_is_used_and_not_opened_again(self):
        listener, address = self.bound()
        text = self.configuration(self.upstream(), listen=address)
        front = self.launch(listener, text)
        self.assertEqual(f"127.0.0.1:{front.port}", address)
        # All workers share it: whichever is idle takes the next.
        for _ in range(20):
            self.assertEqual(front.get().status, 200)

    def test_one_that_is_named_is_listened_on_besides(self):
        listener, address = self.bound()
        front = self.launch(listener, self.configuration(self.upstream()))
        wait_until(lambda: f"gateway on {address}" in front.said, "both are told")
        with socket.create_connection(listener.getsockname()) as sock:
            self.assertEqual(Client(sock).get().status, 200)
        self.assertEqual(front.get().status, 200)

    def test_one_that_nobody_wants_is_told(self):
        listener, address = self.bound()
        front = self.launch(listener, self.configuration(self.upstream()), name="other")
        front.says(f"'other' on {address} is not used")

    # The point of it all: while one process ends and the next begins, clients only wait.
    def test_a_restart_refuses_nobody(self):
        listener, address = self.bound()
        text = self.configuration(self.upstream(), listen=address)
        front = self.launch(listener, text)
        over = threading.Event()
        answers, failures = [], []

        def ask_again_and_again():
            while not over.is_set():
                try:
                    with socket.create_connection(listener.getsockname(), PATIENCE) as sock:
                        answers.append(Client(sock).get().status)
                except (OSError, EOFError) as failure:
                    failures.append(repr(failure))

        threads = [threading.Thread(target=ask_again_and_again) for _ in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(3):
            goal = len(answers) + 50
            wait_until(lambda: len(answers) >= goal, "there are answers")
            self.assertEqual(front.stop(), 0)
            front = self.launch(listener, text)
        goal = len(answers) + 50
        wait_until(lambda: len(answers) >= goal, "there are answers of the last one")
        over.set()
        for thread in threads:
            thread.join(PATIENCE)
        self.assertEqual(failures, [])
        self.assertEqual(set(answers), {200})


    # The address of the admin listener is the file's, or its name is the socket's.
    def test_of_the_admin_listener(self):
        text = self.configuration(self.upstream())
        for name, with_address in (("web", True), ("admin", False)):
            with self.subTest(name=name):
                listener, address = self.bound()
                if with_address:
                    whole = text.replace("listen: {", f"listen: {{admin: '{address}', ")
                else:
                    whole = text
                front = self.launch(listener, whole, name=name)
                front.says(f"admin on {address}")
                self.assertNotIn("is not used", front.said)
                with socket.create_connection(listener.getsockname(), PATIENCE) as sock:
                    answer = Client(sock).ask(get("/livez").replace(b"a.example", address.encode()))
                    self.assertEqual(answer.status, 200)
                self.assertEqual(front.stop(), 0)

    def test_an_admin_listener_that_others_reach_needs_a_token(self):
        listener = socket.create_server(("0.0.0.0", 0))
        self.addCleanup(listener.close)
        with self.assertRaisesRegex(AssertionError, "from other machines without a token"):
            self.launch(listener, self.configuration("127.0.0.1:1"), name="admin")


class HalfClosed(GatewayTest):
    """Clients that end their side with the request, as `nc -N` does, and wait."""

    def slow(self):
        finish = threading.Event()
        app = self.waiting(finish, b"late")
        self.addCleanup(finish.set)  # before it is stopped
        return app, finish

    def test_they_get_their_answer(self):
        app, finish = self.slow()
        front = self.gateway(app)
        for number, request in enumerate((get(), get().replace(b"1.1", b"1.0", 1))):
            with front.connect() as client:
                client.send(request)
                client.sock.shutdown(socket.SHUT_WR)
                wait_until(lambda: len(app.requests) > number, "it is passed on")
                finish.set()
                self.assertEqual(client.answer().body, b"late")
                self.assertTrue(client.is_closed())
            finish.clear()

    def test_an_answer_in_pieces_arrives_whole(self):
        ended, more = threading.Event(), threading.Event()

        def serve(_, wire):
            ended.wait(PATIENCE)  # the client's side, before the answer begins
            wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf")
            more.wait(PATIENCE)
            wire.send(b"half")
            return True

        front = self.gateway(self.upstream(serve))
        self.addCleanup(more.set)
        with front.connect() as client:
            client.send(get())
            client.sock.shutdown(socket.SHUT_WR)
            ended.set()
            answer = client.head()
            while answer.status == 100:
                answer = client.head()
            more.set()
            client.body(answer)
            self.assertEqual(answer.body, b"halfhalf")

    def test_requests_in_one_packet_are_all_answered(self):
        front = self.gateway(self.upstream())
        with front.connect() as client:
            client.send(get() * 3)
            client.sock.shutdown(socket.SHUT_WR)
            self.assertEqual([client.answer().status for _ in range(3)], [200] * 3)
            self.assertTrue(client.is_closed())


if __name__ == "__main__":
    unittest.main()
