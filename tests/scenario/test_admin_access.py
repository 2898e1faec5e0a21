"""Who may ask the admin listener of the real gateway, and which configurations it refuses."""

import signal
import socket
import unittest

from admin_support import AdminTest
from gateway_support import wait_until
from support import sluice


class Access(AdminTest):
    TOKEN = "0123456789abcdef0123456789abcdef"

    def test_a_token_guards_all_but_probes(self):
        token = self.file("admin.token", self.TOKEN + "\n")
        front = self.admin(self.upstream(), more=f"admin: {{token_file: '{token}'}}")
        bearer = f"Authorization: Bearer {self.TOKEN}"
        for path in ("/", "/metrics", "/v1/status", "/nothing"):
            refused = self.ask(front, path)
            self.assertProblem(refused, 401)
            self.assertEqual(refused.get("www-authenticate"), "Bearer")
            self.assertProblem(self.ask(front, path, bearer[:-1]), 401)
            self.assertIn(self.ask(front, path, bearer).status, (200, 404))
        for path in ("/livez", "/readyz", "/healthz"):
            self.assertEqual(self.ask(front, path, host="any.example").status, 200)
        done = sluice("status", "--server", self.url(front))
        self.assertEqual(done.code, 3)
        self.assertIn("--token-file", done.err)
        done = sluice("status", "--server", self.url(front), "--token-file", token)
        self.assertEqual((done.code, done.err), (0, ""))

        # A new token holds from the reload on.
        self.file("admin.token", "another token, just as long as that")
        front.signal(signal.SIGHUP)
        front.says("configuration reloaded")
        wait_until(lambda: self.ask(front, "/", bearer).status == 401, "the old one is void")
        self.file("admin.token", "short")
        front.signal(signal.SIGHUP)
        front.says("too short")
        self.assertEqual(self.ask(front, "/").status, 401)

    def test_without_a_token_names_are_refused(self):
        front = self.admin(self.upstream())
        for host in ("evil.example", f"evil.example:{front.admin_port}", "127.0.0.1.evil.example"):
            self.assertProblem(self.ask(front, "/v1/status", host=host), 403)
        self.assertProblem(self.ask(front, "/metrics", "Origin: https://evil.example"), 403)
        self.assertEqual(self.ask(front, "/metrics", host="localhost").status, 200)

    # Whoever never finishes a request gives way to those who ask.
    def test_bodies_that_never_come_keep_no_probe_out(self):
        front = self.admin(self.upstream())
        clients = [self.connect(front) for _ in range(200)]
        for client in clients:
            client.send(b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\n")
        for path in ("/livez", "/readyz", "/v1/status"):
            self.assertEqual(self.ask(front, path).status, 200)
        for client in clients:
            client.close()

    # Neither does whoever asks for a lot, on every connection there is, and reads nothing of it.
    def test_answers_that_nobody_reads_keep_no_probe_out(self):
        front = self.admin(self.upstream())
        for path in ("/metrics", "/nothing"):
            many = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode() * 500
            # Little room, so that time goes into waiting for them and not into answers for them.
            clients = [self.connect(front, receive_buffer=4096) for _ in range(64)]
            for client in clients:
                client.send(many)
            for _ in range(5):
                self.assertEqual(self.ask(front, "/livez").status, 200)
            for client in clients:
                client.close()

    # By its head alone: nobody sends a megabyte to be told that he may not.
    def test_what_is_refused_needs_no_body(self):
        token = self.file("admin.token", self.TOKEN + "\n")
        front = self.admin(self.upstream(), more=f"admin: {{token_file: '{token}'}}")
        with self.connect(front) as client:
            client.send(b"POST /v1/status HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n")
            refused = client.answer()
            self.assertEqual((refused.status, refused.get("connection")), (401, "close"))

    def test_what_can_be_reached_from_elsewhere_needs_a_token(self):
        text = self.configuration("127.0.0.1:1")
        for address in (":0", "0.0.0.0:0", "'[::]:0'", "10.1.2.3:90", "host.example:90"):
            listen = f"listen: {{admin: {address}, "
            path = self.file("bad.yaml", text.replace("listen: {", listen) + "\n")
            done = sluice("check", path)
            self.assertEqual(done.code, 1, address)
            self.assertRegex(
                done.err + done.out, r"bad\.yaml:1:\d+: .*from other machines without a token"
            )
            self.assertIn("token_file", done.err + done.out)

    def test_tokens_that_cannot_be_used(self):
        text = self.configuration("127.0.0.1:1", more="admin: {token_file: none.token}")
        path = self.file("bad.yaml", text.replace("listen: {", "listen: {admin: '127.0.0.1:0', "))
        done = sluice("serve", "-c", path)
        self.assertEqual(done.code, 3)
        self.assertIn("none.token", done.err)
        self.file("none.token", "short\n")
        self.assertIn("too short", sluice("serve", "-c", path).err)

    def test_another_process_on_the_port(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = "127.0.0.1:%d" % taken.getsockname()[1]
            text = self.configuration("127.0.0.1:1")
            path = self.file("b.yaml", text.replace("listen: {", f"listen: {{admin: '{address}', "))
            done = sluice("serve", "-c", path)
            self.assertEqual(done.code, 3)
            self.assertRegex(done.err, f"{address}.*in use")


if __name__ == "__main__":
    unittest.main()
