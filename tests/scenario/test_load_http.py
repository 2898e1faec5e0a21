"""`sluice load URL` against the real gateway, and as it is documented."""

import os
import pathlib
import re
import shlex
import subprocess
import unittest

from load_support import LoadTest
from support import BINARY, sluice

ROOT = pathlib.Path(__file__).resolve().parents[2]
PER_CLIENT = "[{name: api, per: [header.x-client], limit: 7/1h}]"
AS_CLIENTS = ("--header", "x-client: c{n}")


class AgainstTheGateway(LoadTest):
    # Seven an hour for each of twenty clients, who ask twenty-five times each.
    def test_each_client_gets_its_limit_exactly(self):
        front = self.gateway(self.upstream(), rules=PER_CLIENT)
        result = self.load(
            self.url(front),
            *("--clients", 20, *AS_CLIENTS, "--rate", "500/s", "--duration", "1s"),
            *("--expect", "7/1h", "--algorithm", "token_bucket"),
        )
        self.assertEqual(result["offered"], 500)
        self.assertEqual((result["admitted"], result["rejected"]), (140, 360))
        self.assertEqual(result["statuses"], {"200": 140, "429": 360})
        of_clients = result["admitted_per_client"]
        self.assertEqual((of_clients["least"], of_clients["most"]), (7, 7))
        self.assertEqual(result["expect"]["kept"], True)
        self.assertEqual(result["expect"]["most_allowed"], 7)

    # What the limits are, the server says itself.
    def test_limits_are_learned_from_the_answers(self):
        rules = (
            "[{name: api, per: [header.x-client], limit: 7/1h},"
            " {name: all, per: [ip], limit: 10000/1m}]"
        )
        front = self.gateway(self.upstream(), rules=rules)
        options = ("--clients", 2, *AS_CLIENTS, "--rate", "100/s", "--duration", "1s")
        result = self.load(self.url(front), *options)
        stated = {one["name"]: (one["quota"], one["window_seconds"]) for one in result["policies"]}
        self.assertEqual(stated, {"api": (7, 3600), "all": (10000, 60)})
        self.assertEqual({one["answers"] for one in result["policies"]}, {100})
        self.assertGreaterEqual(result["retry_after_seconds"]["least"], 1)
        self.assertLessEqual(result["retry_after_seconds"]["most"], 3600)
        self.assertIsNone(result["expect"])

    def test_more_than_expected_is_told_and_exits_with_1(self):
        front = self.gateway(self.upstream(), rules=PER_CLIENT)
        options = ("--rate", "50/s", "--duration", "1s", "--expect", "5/1h", "-a", "token_bucket")
        result = self.load(self.url(front), "-H", "x-client: a", *options, code=1)
        self.assertIn(
            "more was admitted than the limit allows: 7 instead of at most 5", result["said"]
        )
        self.assertEqual(result["expect"]["kept"], False)
        done = sluice("load", self.url(front), "-H", "x-client: b", *options)
        self.assertEqual(done.code, 1)
        self.assertIn(
            "BROKEN: at most 5 of one client were to be admitted; of client 1 it was 7", done.out
        )

    def test_the_report_shows_both_classes_and_what_was_kept(self):
        front = self.gateway(self.upstream(), rules=PER_CLIENT)
        done = sluice(
            *("load", self.url(front), "--rate", "100/s", "--duration", "1s", "--expect", "7/1h"),
            *("--clients", 4, *AS_CLIENTS),
        )
        self.assertEqual(done.code, 0, done.err)
        for pattern in (
            r"(?m)^GET http://127\.0\.0\.1:\d+/$",
            r"(?m)^100 requests a second for 1s, 4 clients, 64 connections, 1 thread$",
            r"(?m)^offered +100 +100\.0 +100\.0%$",
            r"(?m)^admitted +28 +[\d.]+ +28\.0%$",
            r"(?m)^rejected +72 +[\d.]+ +72\.0%$",
            r"(?m)^admitted +scheduled start +\S+ +\S+ +\S+ +\S+ +\S+$",
            r"(?m)^7 in 1h +--expect +",
            r"(?m)^api: 7 in 3600s +the server +",
            r"(?m)^kept: at most 14 of one client",
        ):
            self.assertRegex(done.out, pattern)
        self.assertNotIn("\x1b", done.out + done.err)

    def test_threads_share_the_schedule_and_the_clients(self):
        front = self.gateway(self.upstream(), rules=PER_CLIENT)
        result = self.load(
            self.url(front),
            *("--clients", 10, *AS_CLIENTS, "--rate", "400/s", "--duration", "1s"),
            *("--threads", 3, "--connections", 8),
        )
        self.assertEqual((result["offered"], result["admitted"]), (400, 70))
        self.assertEqual(result["admitted_per_client"]["least"], 7)

    # Stacks so large that there is no room for one.
    def test_threads_that_find_no_room_are_named(self):
        options = ("--rate", "10/s", "--duration", "1s", "--threads", "3", "--connections", "3")
        done = subprocess.run(
            ["prlimit", f"--stack={1 << 46}:", BINARY, "load", self.url(self.upstream()), *options],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        if "ThreadSanitizer" in done.stderr:
            self.skipTest("its runtime wants memory laid out in the usual way")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("the system has no room for 3 threads; use fewer --threads", done.stderr)

    def test_keys_of_a_file_are_the_clients(self):
        keys = self.file("keys.txt", "# three\nalpha\nbeta\n\ngamma\n")
        app = self.upstream()
        front = self.gateway(app, rules=PER_CLIENT)
        options = (
            "--keys-file",
            keys,
            "-H",
            "x-client: {key}",
            "--rate",
            "60/s",
            "--duration",
            "1s",
        )
        result = self.load(self.url(front), *options)
        self.assertEqual((result["clients"], result["admitted"]), (3, 21))
        self.assertEqual({one.get("x-client") for one in app.requests}, {"alpha", "beta", "gamma"})

    def test_zipf_gives_the_first_client_the_most(self):
        app = self.upstream()
        options = ("--clients", 50, *AS_CLIENTS, "--spread", "zipf", "--rate", "500/s")
        result = self.load(self.url(app), *options, "--duration", "1s", "--seed", 5)
        self.assertEqual(result["admitted_per_client"]["busiest"], 1)
        self.assertGreater(result["admitted_per_client"]["most"], 70)  # 111 on average

    def test_https_with_an_authority_of_its_own(self):
        def openssl(*arguments):
            subprocess.run(
                ["openssl", *arguments], cwd=self.folder, check=True, capture_output=True
            )

        curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
        openssl(
            *("req", "-x509", *curve, "-keyout", "c.key", "-out", "c.pem", "-days", "2"),
            *("-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1"),
        )
        certificate, key = (os.path.join(self.folder, name) for name in ("c.pem", "c.key"))
        files = f"{{cert_file: {certificate}, key_file: {key}}}"
        more = f"gateway: {{tls: {{certificates: [{files}]}}}}"
        front = self.gateway(self.upstream(), more=more)
        url = self.url(front, scheme="https")
        options = ("--rate", "100/s", "--duration", "1s", "--connections", 4)
        for trust in (("--ca-file", certificate), ("--insecure",)):
            result = self.load(url, *options, *trust)
            self.assertEqual(result["statuses"], {"200": 100}, result)
        done = self.refuses(3, r"cannot connect to 127\.0\.0\.1:\d+: ", "load", url, *options)
        self.assertIn("--ca-file", done.err)


class BadOptions(LoadTest):
    def test_each_has_its_message(self):
        url = "http://127.0.0.1:1/"
        cases = [
            (["ftp://a/"], r"is no URL to load: it does not begin with http:// or https://"),
            (["http://127.0.0.1/a b"], r"is no URL to load: a path has no spaces"),
            ([url, "--rate", "x"], r"--rate: 'x' is no rate.*as in 2000/s"),
            ([url, "--duration", "0s"], r"--duration: must be more than 0"),
            ([url, "--duration", "8d"], r"--duration: a run lasts at most a week"),
            ([url, "--connections", "0"], r"--connections: '0' is not a whole number from 1 to"),
            ([url, "--threads", "4", "--connections", "2"], r"4 threads have nothing to do with 2"),
            ([url, "--clients", "5"], r"nothing tells the 5 clients apart; add --header"),
            ([url, "--spread", "odd"], r"--spread: 'odd' is not known; use even or zipf"),
            ([url, "-H", "x"], r"--header: 'x' is no header; write --header 'name: value'"),
            ([url, "-H", "connection: close"], r"--header: 'connection' is up to the program"),
            (
                [url, "-H", "k: {key}"],
                r"{key} stands for a line of a file of keys; add --keys-file",
            ),
            ([url, "--keys-file", "/nowhere/keys"], r"/nowhere/keys"),
            ([url, "--method", "a b"], r"--method: 'a b' cannot be sent"),
            ([url, "--body", "a", "--body-size", "3"], r"--body and --body-size say different"),
            ([url, "--body-size", "x"], r"--body-size: 'x' is not a whole number of bytes"),
            ([url, "--timeout", "5"], r"--timeout: '5' lacks a unit"),
            ([url, "--closed", "--rate", "5/s"], r"--closed sends as fast as responses come"),
            ([url, "--ca-file", "x"], r"--ca-file and --insecure are for https"),
            ([url, "--expect", "x"], r"--expect: "),
            ([url, "--expect", "0/1s"], r"--expect: .*an amount of 0"),
            ([url, "--expect", "5/day"], r"--expect: .*windows of the calendar cannot be checked"),
            ([url, "--burst", "5"], r"--burst and --algorithm describe what to expect"),
            ([url, "--limit", "5/1s"], r"--limit is for a limiter in this process.*--expect"),
            ([url, "--keys", "5"], r"--keys is for a limiter in this process.*--clients"),
            ([url, "--batches", "5@1"], r"--batches or --retry is for a limiter in this process"),
            ([url, "--virtual"], r"--virtual is for a limiter in this process"),
            (["-l", "5/1s", "--clients", "5"], r"--clients is for runs against a server; add its"),
            (["-l", "5/1s", "--svg", "x.svg"], r"--svg is for runs against a server"),
        ]
        for options, pattern in cases:
            with self.subTest(options=options):
                self.refuses(2, pattern, "load", *options)


class Documented(LoadTest):
    """docs/load.md: its configuration is served, and its commands are run against it."""

    def blocks(self, language):
        text = (ROOT / "docs" / "load.md").read_text()
        return re.findall(rf"(?ms)^```{language}\n(.*?)^```$", text)

    def test_the_commands_do_what_they_say(self):
        (configuration,) = self.blocks("yaml")
        app = self.upstream()
        text = configuration.replace("127.0.0.1:8080", "127.0.0.1:0")
        front = self.serve(text.replace("127.0.0.1:3000", app.address))
        self.file("keys.txt", "one\ntwo\nthree\n")
        commands = "".join(self.blocks("sh")).replace("\\\n", " ").splitlines()
        self.assertGreater(len(commands), 3)
        for command in commands:
            with self.subTest(command=command):
                program, *words = shlex.split(
                    command.replace("127.0.0.1:8080", f"127.0.0.1:{front.port}")
                )
                self.assertEqual(program, "sluice")
                done = subprocess.run(
                    [BINARY, *words], cwd=self.folder, capture_output=True, check=False, timeout=60
                )
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(b"admitted", done.stdout)


if __name__ == "__main__":
    unittest.main()
