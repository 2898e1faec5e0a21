"""Files that the configuration names: each change of them comes into force by itself."""

import hashlib
import os
import re
import shutil
import signal
import socket
import ssl
import unittest

from admin_support import AdminTest
from gateway_support import Authority, Client, wait_until


class ReloadFiles(AdminTest):
    def path(self, name):
        return os.path.join(self.folder, name)

    def replace(self, name, text):
        os.replace(self.file("new", text), self.path(name))

    # ---- keys -----------------------------------------------------------------------------------

    def keys_file(self, *keys):
        entries = (
            f"  - {{name: {key}, hash: 'sha256:{hashlib.sha256(key.encode()).hexdigest()}'}}\n"
            for key in keys
        )
        return "keys:\n" + "".join(entries)

    def with_keys(self):
        keys = ["first", "second"]
        self.file("keys.yaml", self.keys_file(*keys))
        more = "clients: {api_keys: {header: x-api-key, file: keys.yaml}, require_auth: true}"
        front = self.gateway(self.upstream(), more=more)
        self.assertEqual([self.ask_with(front, key) for key in keys], [200, 200])
        return front, keys

    def ask_with(self, front, key):
        return front.get("/", f"X-Api-Key: {key}").status

    def test_a_key_that_is_removed_is_unknown_soon(self):
        front, keys = self.with_keys()
        self.replace("keys.yaml", self.keys_file("second"))
        wait_until(lambda: self.ask_with(front, keys[0]) == 401, "the key is unknown", seconds=5)
        self.assertEqual(self.ask_with(front, keys[1]), 200)

    def test_half_a_file_changes_nothing_and_is_told_of(self):
        front, keys = self.with_keys()
        whole = self.keys_file(*keys)
        for half in ("", whole[: len(whole) // 2]):
            before = front.said.count("kept the old configuration")
            self.file("keys.yaml", half)  # in place
            wait_until(
                lambda: front.said.count("kept the old configuration") > before,
                f"it is told of: {front.said}",
            )
            self.assertEqual([self.ask_with(front, key) for key in keys], [200, 200])
        self.file("keys.yaml", whole)
        front.says("configuration reloaded")

    # ---- certificates ---------------------------------------------------------------------------

    def shown(self, front):
        """The common name on the certificate."""
        context = ssl.create_default_context(cafile=self.path("ca.pem"))
        context.check_hostname = False
        with socket.create_connection(("127.0.0.1", front.port)) as plain:
            with context.wrap_socket(plain, server_hostname="a.example") as wire:
                return dict(pair[0] for pair in wire.getpeercert()["subject"])["commonName"]

    def copy(self, name):
        for end in (".pem", ".key"):
            shutil.copy(self.path(name + end), self.path("new" + end))
        for end in (".key", ".pem"):  # with a moment between them
            os.replace(self.path("new" + end), self.path("now" + end))

    def test_a_certificate_that_is_replaced_is_shown_soon(self):
        authority = Authority(self.folder, "ca")
        for name in ("first", "second"):
            authority.issue(name, name, "DNS:a.example")
        self.copy("first")
        tls = "gateway: {tls: {certificates: [{cert_file: now.pem, key_file: now.key}]}}"
        front = self.gateway(self.upstream(), more=tls)
        self.assertEqual(self.shown(front), "first")
        self.copy("second")
        wait_until(lambda: self.shown(front) == "second", "it shows the new one")
        # Only one of the two: that cannot be used, and the old ones stay.
        shutil.copy(self.path("first.key"), self.path("now.key"))
        front.says("kept the old configuration")
        self.assertEqual(self.shown(front), "second")

    # A reload would cost every client a handshake, all of them at once.
    def test_sessions_are_resumed_over_a_reload(self):
        Authority(self.folder, "ca").issue("now", "now", "DNS:a.example")
        tls = "gateway: {tls: {certificates: [{cert_file: now.pem, key_file: now.key}]}}"
        front = self.gateway(self.upstream(), more=tls)
        context = ssl.create_default_context(cafile=self.path("ca.pem"))

        def connect(session=None):
            plain = socket.create_connection(("127.0.0.1", front.port))
            wire = context.wrap_socket(plain, server_hostname="a.example", session=session)
            with Client(wire) as client:
                self.assertEqual(client.get().status, 200)
                return wire.session, wire.session_reused

        session, reused = connect()
        self.assertFalse(reused)
        front.signal(signal.SIGHUP)
        front.says("configuration reloaded")
        _, reused = connect(session)
        self.assertTrue(reused)

    # ---- trees of envoyproxy/ratelimit ----------------------------------------------------------

    def tree(self, amount, domain="edge"):
        limit = f"{{unit: second, requests_per_unit: {amount}}}"
        return f"domain: {domain}\ndescriptors: [{{key: client, rate_limit: {limit}}}]\n"

    def told_after(self, front, change, sentence):
        """What the server says after a change, from one of these sentences on."""
        before = len(front.said)
        change()
        wait_until(lambda: sentence in front.said[before:], f"{sentence}: {front.said}")
        return front.said[before:]

    def test_a_folder_of_trees_is_watched(self):
        os.mkdir(self.path("trees"))
        self.file("trees/a.yaml", self.tree(1))
        front = self.gateway(self.upstream(), more="rules_from: {envoy: trees}")
        took, kept = "configuration reloaded", "kept the old configuration"
        self.told_after(front, lambda: self.file("trees/a.yaml", self.tree(2)), took)
        # A broken one is told of with its place, and changes nothing.
        told = self.told_after(front, lambda: self.file("trees/a.yaml", self.tree("x")), kept)
        self.assertRegex(told, r"trees/a\.yaml:2:\d+: .*'x' is no such number")
        self.told_after(front, lambda: self.replace("trees/a.yaml", self.tree(3)), took)
        # A new file is part of them, here a second one for the same domain.
        told = self.told_after(front, lambda: self.file("trees/b.yaml", self.tree(4)), kept)
        self.assertIn("the domain 'edge' is already in", told)
        self.told_after(front, lambda: os.remove(self.path("trees/b.yaml")), took)
        self.assertEqual(front.get().status, 200)

    def test_a_folder_of_trees_that_kubernetes_mounts_is_watched(self):
        def publish(version, *files):
            os.makedirs(self.path(f"trees/..{version}"))
            for name, text in files:
                self.file(f"trees/..{version}/{name}", text)
            os.symlink(f"..{version}", self.path("trees/..new"))
            os.replace(self.path("trees/..new"), self.path("trees/..data"))

        publish(1, ("a.yaml", self.tree(1)))
        os.symlink("..data/a.yaml", self.path("trees/a.yaml"))
        front = self.gateway(self.upstream(), more="rules_from: {envoy: trees}")
        took, kept = "configuration reloaded", "kept the old configuration"
        self.told_after(front, lambda: publish(2, ("a.yaml", self.tree(2))), took)
        self.told_after(front, lambda: publish(3, ("a.yaml", self.tree("x"))), kept)
        self.told_after(front, lambda: publish(4, ("a.yaml", self.tree(4))), took)

    def test_another_folder_of_trees_is_watched_once_it_is_named(self):
        for name in ("trees", "others"):
            os.mkdir(self.path(name))
            self.file(f"{name}/a.yaml", self.tree(1))
        app = self.upstream()
        front = self.gateway(app, more="rules_from: {envoy: trees}")
        took = "configuration reloaded"
        text = self.configuration(app, more="rules_from: {envoy: others}") + "\n"
        self.told_after(front, lambda: self.replace("sluice.yaml", text), took)
        self.told_after(front, lambda: self.file("others/a.yaml", self.tree(2)), took)

    # ---- what else a reload does ----------------------------------------------------------------

    def test_the_token_of_the_admin_listener(self):
        self.file("token", 32 * "a")
        front = self.admin(self.upstream(), more="admin: {token_file: token}")

        def status(token):
            return self.ask(front, "/v1/status", f"Authorization: Bearer {token}").status

        self.assertEqual(status(32 * "a"), 200)
        self.replace("token", 32 * "b")
        wait_until(lambda: status(32 * "b") == 200, "the new token is good")
        self.assertEqual(status(32 * "a"), 401)

    # The address needs a restart; the token that nobody else knows does not wait for it.
    def test_the_token_changes_also_where_the_address_cannot(self):
        self.file("token", 32 * "a")
        front = self.admin(self.upstream(), more="admin: {token_file: token}")
        self.file("other", 32 * "b")
        with open(front.file, encoding="utf-8") as stream:
            text = stream.read()
        changed = re.sub(r"admin: '?127.0.0.1:0'?", "admin: '127.0.0.2:0'", text, count=1)
        self.assertNotEqual(changed, text)
        self.file("sluice.yaml", changed.replace("token_file: token", "token_file: other"))
        front.says("until then: listen.admin")

        def status(token):
            return self.ask(front, "/v1/status", f"Authorization: Bearer {token}").status

        wait_until(lambda: status(32 * "b") == 200, "the new token is good")
        self.assertEqual(status(32 * "a"), 401)

    def test_the_secret_of_partitions(self):
        self.file("secret", "first")
        more = "gateway: {ratelimit_headers: {families: [ietf-11], partition_secret_file: secret}}"
        front = self.gateway(
            self.upstream(), rules="[{name: a, per: ip, limit: 100/1h}]", more=more
        )

        def partition():
            return re.search(r"pk=:([^:]+):", front.get().get("ratelimit")).group(1)

        first = partition()
        self.replace("secret", "second")
        wait_until(lambda: partition() != first, "the new secret is used")

    def test_the_access_log_can_be_switched_on_moved_and_switched_off(self):
        app = self.upstream()
        front = self.gateway(app)

        def change(log):
            before = front.said.count("configuration reloaded")
            more = f"access_log: {log}" if log else ""
            self.replace("sluice.yaml", self.configuration(app, more=more) + "\n")
            wait_until(
                lambda: front.said.count("configuration reloaded") > before, "it is read"
            )

        def lines(name):
            if not os.path.exists(self.path(name)):
                return ""
            with open(self.path(name), encoding="utf-8") as stream:
                return stream.read()

        change("{file: a.log}")
        front.get("/one")
        wait_until(lambda: "GET /one HTTP" in lines("a.log"), "it is logged")
        change("{file: b.log, format: json}")
        front.get("/two")
        wait_until(lambda: '"target":"/two"' in lines("b.log"), "it is logged elsewhere")
        change("")
        front.get("/three")
        front.get("/three")
        self.assertNotIn("/three", lines("a.log") + lines("b.log"))
        self.assertNotIn("needs a restart", front.said)

    def test_an_access_log_that_cannot_be_written_changes_nothing(self):
        app = self.upstream()
        front = self.gateway(app)
        text = self.configuration(app, more="access_log: {file: no/such/folder/log}")
        self.replace("sluice.yaml", text + "\n")
        front.says("kept the old configuration")
        front.says("no/such/folder/log")

    def test_what_needs_a_restart_is_named(self):
        app = self.upstream()
        front = self.gateway(app)
        text = self.configuration(
            app, workers=1, state="state: {memory: 8MiB, file: counts}", listen="127.0.0.1:1"
        )
        self.replace("sluice.yaml", text + "\n")
        front.says("needs a restart")
        line = next(line for line in front.said.splitlines() if "needs a restart" in line)
        self.assertTrue(line.endswith("listen.gateway, workers, state.memory, state.file"), line)
        self.assertEqual(front.get().status, 200)
        # With everything as it was, nothing is left to say.
        told = front.said.count("needs a restart")
        self.replace("sluice.yaml", self.configuration(app) + "\n")
        front.signal(signal.SIGHUP)
        wait_until(lambda: front.said.count("configuration reloaded") >= 2, "it is read again")
        self.assertEqual(front.said.count("needs a restart"), told)


if __name__ == "__main__":
    unittest.main()
