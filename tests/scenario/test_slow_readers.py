"""Logs that nobody reads, or somebody who takes a long time."""

import os
import re
import signal
import subprocess
import threading
import time
import unittest

from admin_support import AdminTest
from gateway_support import PATIENCE, has_signal, wait_until
from support import BINARY

LONG = "/" + 6000 * "a"


class SlowReaders(AdminTest):
    """Of the access log on standard output, as in a container."""

    def pipe(self):
        out, into = os.pipe()
        self.addCleanup(os.close, out)
        return out, into

    def front(self, into, **options):
        front = self.admin(
            self.upstream(), more="access_log: {file: '-'}", stdout=into, workers=1, **options
        )
        os.close(into)
        return front

    def ask_often(self, front, count, path=LONG):
        with front.connect() as client:
            for _ in range(count):
                self.assertEqual(client.get(path).status, 200)

    def ends_in_time(self, front):
        begin = time.monotonic()
        front.signal(signal.SIGTERM)
        self.assertEqual(front.wait(), 0, front.said)
        self.assertLess(time.monotonic() - begin, 10)

    def test_one_that_does_not_read_stops_nothing(self):
        _, into = self.pipe()
        front = self.front(into)
        # More than the pipe and the buffers hold.
        self.ask_often(front, 300)
        page = self.page(front)
        dropped = page.sum("sluice_access_log_lines_total", result="dropped")
        self.assertGreater(dropped, 0)
        written = page.sum("sluice_access_log_lines_total", result="written")
        self.assertEqual(written + dropped, 300)
        self.ends_in_time(front)

    def test_one_that_begins_late_gets_whole_lines(self):
        out, into = self.pipe()
        front = self.front(into)
        self.ask_often(front, 300)
        self.ask_often(front, 1, "/last")  # may find no room
        read = []

        def reads():
            while data := os.read(out, 4096):
                read.append(data)

        reader = threading.Thread(target=reads)
        reader.start()
        self.ends_in_time(front)
        reader.join(PATIENCE)
        lines = b"".join(read).decode().splitlines(keepends=True)
        self.assertGreater(len(lines), 20)
        for line in lines:
            self.assertRegex(line, r'^127\.0\.0\.1 - .*"GET /(a+|last) HTTP/1.1" 200 .*\n$')

    def test_one_that_reads_misses_nothing(self):
        out, into = self.pipe()
        front = self.front(into)
        read = []

        def reads():
            while data := os.read(out, 65536):
                read.append(data)

        reader = threading.Thread(target=reads)
        reader.start()
        self.ask_often(front, 500, "/a")
        self.ends_in_time(front)
        reader.join(PATIENCE)
        self.assertEqual(b"".join(read).count(b"GET /a HTTP"), 500)

    def test_the_other_end_of_standard_output_stays_as_it_is(self):
        _, into = self.pipe()
        again = os.dup(into)
        self.addCleanup(os.close, again)
        self.front(into)
        self.assertTrue(os.get_blocking(again))

    # Messages for the operator, to standard error.
    def test_one_of_messages_that_does_not_read_stops_nothing(self):
        path = self.file("sluice.yaml", self.configuration(self.upstream()) + "\n")
        process = subprocess.Popen([BINARY, "serve", "-c", path], stderr=subprocess.PIPE)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.kill)
        while not re.search(r"gateway on 127\.0\.0\.1:\d+", process.stderr.readline().decode()):
            self.assertIsNone(process.poll())
        # The report is far longer than what the pipe takes.
        mistakes = "".join(f"key{i}{200 * 'x'}: 1\n" for i in range(100))
        for _ in range(10):
            self.file("sluice.yaml", mistakes)
            process.send_signal(signal.SIGHUP)
            # Until the signal is taken, the next one would be the same.
            wait_until(
                lambda: not has_signal(process.pid, "ShdPnd", signal.SIGHUP), "it is taken"
            )
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(PATIENCE), 0)
        self.assertTrue(re.search("kept the old", process.stderr.read().decode()))


if __name__ == "__main__":
    unittest.main()
