"""A front end added in one folder and two lines (tests/listener_line): a listener like others."""

import json
import os
import re
import signal
import socket
import unittest

from admin_support import AdminTest, Page
from gateway_support import connected, wait_until
from launch_support import LaunchTest
from support import sluice


class NewListener(AdminTest, LaunchTest):
    def lines(self, line="text_file: line.txt", more="", **options):
        """A gateway with the new listener beside it."""
        front = self.admin(
            self.upstream(),
            listen="127.0.0.1:0', line: '127.0.0.1:0",  # of admin, and one more
            more=f"line: {{{line}}}\n{more}",
            **options,
        )
        front.says("line on")
        front.line_port = int(re.search(r"line on 127\.0\.0\.1:(\d+)", front.said).group(1))
        return front

    def setUp(self):
        super().setUp()
        self.file("line.txt", "first\n")

    def heard(self, front):
        with connected(front.line_port) as client:
            return client.makefile("rb").readline()

    def status(self, front):
        return json.loads(self.ask(front, "/v1/status").body)

    def metrics(self, front):
        return Page(self.ask(front, "/metrics").body.decode())

    def test_serves_beside_the_gateway(self):
        front = self.lines()
        self.assertEqual(self.heard(front), b"first\n")
        self.assertEqual(front.get().status, 200)

    def test_a_reload_brings_what_its_files_say_now(self):
        front = self.lines()
        with connected(front.line_port) as before:
            self.assertEqual(before.makefile("rb").readline(), b"first\n")
            self.file("line.txt", "second\n")  # which is watched, as it is named in the file
            wait_until(lambda: self.heard(front) == b"second\n", "the new line is told")
            before.setblocking(False)
            self.assertRaises(BlockingIOError, before.recv, 1)  # it was neither told nor closed

    def test_a_wrong_reload_changes_nothing(self):
        front = self.lines()
        os.remove(os.path.join(self.folder, "line.txt"))
        front.says("kept the old configuration")
        self.assertRegex(front.said, r"sluice\.yaml:\d+:\d+: line\.text_file: ")
        self.assertEqual(self.heard(front), b"first\n")

    def test_another_address_needs_a_restart(self):
        front = self.lines()
        with open(os.path.join(self.folder, "sluice.yaml"), encoding="utf-8") as stream:
            text = stream.read()
        self.file("sluice.yaml", text.replace("line: '127.0.0.1:0'", "line: '127.0.0.1:1'"))
        front.says("needs a restart, and is as before until then: listen.line")
        self.assertEqual(self.heard(front), b"first\n")

    def test_reports_to_status_and_metrics(self):
        front = self.lines(more="access_log: {file: access.log}")
        listener = {"name": "line", "endpoint": f"127.0.0.1:{front.line_port}"}
        self.assertIn(listener, self.status(front)["listeners"])
        with connected(front.line_port) as one, connected(front.line_port) as other:
            for client in (one, other):
                self.assertEqual(client.makefile("rb").readline(), b"first\n")
            status = self.status(front)
            self.assertEqual((status["connections"], status["requests_in_flight"]), (2, 2))
            page = self.metrics(front)
            self.assertEqual(page.sum("sluice_connections", listener="line"), 2)
            self.assertEqual(page.sum("sluice_connections", listener="gateway"), 0)
            self.assertEqual(page.sum("sluice_requests_total", listener="line"), 2)
        wait_until(lambda: self.status(front)["connections"] == 0, "both are closed")
        wait_until(lambda: self.log().count('"LINE / LINE/1" 200') == 2, "both are logged")

    def test_counts_what_it_rejects(self):
        front = self.lines("text_file: line.txt, max_connections: 1", workers=1)
        with connected(front.line_port) as first:
            self.assertEqual(first.makefile("rb").readline(), b"first\n")
            self.assertEqual(self.heard(front), b"")
            page = self.metrics(front)
            self.assertEqual(page.sum("sluice_connections_rejected_total", listener="line"), 1)

    def test_drains_with_the_others(self):
        front = self.lines()
        with connected(front.line_port) as client:
            self.assertEqual(client.makefile("rb").readline(), b"first\n")
            front.signal(signal.SIGTERM)
            front.says("draining")

            def is_refused():
                try:
                    connected(front.line_port).close()
                except ConnectionRefusedError:
                    return True
                return False

            wait_until(is_refused, "no more connections are accepted")
            # For longer than the server takes to notice that nothing is in flight any more.
            for _ in range(50):
                self.assertEqual(self.status(front)["state"], "draining")
            client.setblocking(False)
            self.assertRaises(BlockingIOError, client.recv, 1)
        self.assertEqual(front.wait(), 0)

    def test_takes_a_socket_of_the_service_manager_by_its_name(self):
        listener, _ = self.bound()
        text = self.configuration(self.upstream(), more="line: {text_file: line.txt}")
        front = self.launch(listener, text, name="line")
        front.line_port = listener.getsockname()[1]
        front.says(f"line on 127.0.0.1:{front.line_port}")
        self.assertEqual(self.heard(front), b"first\n")

    def test_is_off_unless_the_file_names_it(self):
        front = self.admin(self.upstream())
        self.assertNotIn("line on", front.said)
        self.assertNotIn('listener="line"', self.ask(front, "/metrics").body.decode())


class NewListenerInAFile(AdminTest):
    """What `sluice check` says about its section."""

    def checked(self, line, listen="127.0.0.1:0"):
        text = self.configuration("127.0.0.1:1", more=line)
        text = text.replace("listen: {", f"listen: {{line: '{listen}', ")
        return sluice("check", self.file("sluice.yaml", text + "\n"))

    def test_its_keys_are_known_and_its_former_ones_are_explained(self):
        self.file("line.txt", "hello\n")
        self.assertEqual(self.checked("line: {text_file: line.txt}").code, 0)
        former = self.checked("line: {text: hello}").err
        self.assertRegex(former, r"sluice\.yaml:\d+:\d+: .*text_file")
        self.assertIn("max_connections", self.checked("line: {max_conections: 1}").err)

    def test_its_files_and_addresses_are_looked_at(self):
        self.assertRegex(self.checked("line: {text_file: none.txt}").err, r"line\.text_file: ")
        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = "127.0.0.1:%d" % taken.getsockname()[1]
            done = self.checked("", address)
            self.assertIn(f"listen.line: cannot listen on {address}", done.err + done.out)

    def test_it_is_in_the_schema_and_the_reference(self):
        self.assertIn("listen.line", sluice("check", "--print-reference").out)
        schema = json.loads(sluice("check", "--print-schema").out)
        self.assertIn("line", json.dumps(schema))


if __name__ == "__main__":
    unittest.main()
