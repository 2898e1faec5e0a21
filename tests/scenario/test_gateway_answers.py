"""What answers carry: where clients stand, dates, ids, and who passed them on."""

import email.utils
import re
import socket
import threading
import time
import unittest

from gateway_support import PATIENCE, Gateway, GatewayTest, get, post, reply, wait_until
from support import sluice

TWO = "[{name: api, per: ip, limit: 5/1m}, {name: daily, per: ip, limit: 1000/day}]"
EPOCH = r"\d{10,}"

# What each family writes on the first answer, as regular expressions.
FAMILIES = {
    "ietf-11": {
        "ratelimit-policy": r'"api";q=5;w=60, "daily";q=1000;w=86400',
        "ratelimit": r'"api";r=4;t=12, "daily";r=999;t=\d+',
    },
    "ietf-next": {
        "ratelimit-policy": r'"api";q=5;w=60, "daily";q=1000;w=86400',
        "ratelimit": r'"api";a=4;w=12, "daily";a=999;w=\d+',
    },
    "ietf-07": {
        "ratelimit-policy": r"5;w=60, 1000;w=86400",
        "ratelimit": r"limit=5, remaining=4, reset=12",
    },
    "ietf-03": {
        "ratelimit-limit": "5",
        "ratelimit-remaining": "4",
        "ratelimit-reset": "12",
    },
    "x-ratelimit-delta": {
        "x-ratelimit-limit": "5",
        "x-ratelimit-remaining": "4",
        "x-ratelimit-reset": "12",
    },
    "x-ratelimit-epoch": {
        "x-ratelimit-limit": "5",
        "x-ratelimit-remaining": "4",
        "x-ratelimit-used": "1",
        "x-ratelimit-reset": EPOCH,
        "x-ratelimit-resource": "api",
    },
    "x-rate-limit-epoch": {
        "x-rate-limit-limit": "5",
        "x-rate-limit-remaining": "4",
        "x-rate-limit-reset": EPOCH,
    },
}


def rates(answer):
    """The headers that tell where a client stands."""
    return {
        name.lower(): answer.get(name.lower())
        for name, _ in answer.headers
        if re.match(r"(x-)?rate-?limit", name.lower())
    }


class Standing(GatewayTest):
    def front(self, headers, rules=TWO, serve=None, **options):
        more = f"gateway: {{ratelimit_headers: {headers}}}"
        return self.gateway(self.upstream(serve), rules=rules, more=more, **options)

    def test_every_family_is_written_as_it_is_described(self):
        for family, expected in FAMILIES.items():
            with self.subTest(family=family):
                found = rates(self.front(f"[{family}]").get())
                self.assertEqual(set(found), set(expected))
                for name, pattern in expected.items():
                    self.assertRegex(found[name], f"^{pattern}$")

    def test_several_stand_together_and_none_is_none(self):
        both = self.front("[ietf-11, x-rate-limit-epoch]").get()
        wanted = set(FAMILIES["ietf-11"]) | set(FAMILIES["x-rate-limit-epoch"])
        self.assertEqual(set(rates(both)), wanted)
        self.assertEqual(rates(self.front("none").get()), {})

    def test_they_may_come_with_refusals_alone(self):
        front = self.front("{families: [ietf-03], when: on_rejection}")
        with front.connect() as client:
            answers = [client.get() for _ in range(6)]
        self.assertEqual([answer.status for answer in answers], [200] * 5 + [429])
        self.assertEqual([bool(rates(answer)) for answer in answers], [False] * 5 + [True])

    def test_they_may_come_once_little_is_left(self):
        rules = "[{name: api, per: ip, limit: 10/1h}]"
        headers = "{families: [ietf-03], when: below_threshold, threshold_percent: 50}"
        front = self.front(headers, rules)
        with front.connect() as client:
            shown = [rates(client.get()).get("ratelimit-remaining") for _ in range(11)]
        self.assertEqual(shown, [None] * 5 + ["4", "3", "2", "1", "0", "0"])

    def test_the_tightest_may_stand_alone(self):
        found = rates(self.front("{most_restrictive_only: true}").get())
        self.assertEqual(found["ratelimit-policy"], '"api";q=5;w=60')
        self.assertEqual(found["ratelimit"], '"api";r=4;t=12')

    def test_names_may_be_others(self):
        rename = "{RateLimit-Limit: X-Most, ratelimit-reset: none}"
        answer = self.front(f"{{families: [ietf-03], rename: {rename}}}").get()
        self.assertEqual(answer.get("x-most"), "5")
        self.assertEqual(rates(answer), {"ratelimit-remaining": "4"})

    # Two clients can be told apart, and neither can be guessed.
    def test_partitions_are_told_by_hashes(self):
        self.file("secret", "of this gateway\n")
        more = (
            "gateway: {ratelimit_headers: {partition_secret_file: secret}}\n"
            "clients: {trusted_proxies: [127.0.0.0/8]}"
        )
        front = self.gateway(self.upstream(), rules=TWO, more=more)
        partitions = []
        for client in ("10.0.0.1", "10.0.0.2", "10.0.0.1", "2001:db8::1", "2001:db8::2"):
            found = rates(front.get("/", f"X-Forwarded-For: {client}"))
            partitions.append(re.search(r"pk=:([A-Za-z0-9+/]{16}):", found["ratelimit"]).group(1))
            self.assertNotIn(client, str(found))
        ann, bob, again, one, network = partitions
        self.assertEqual((ann, one), (again, network))
        self.assertEqual(len({ann, bob, one}), 3)
        with front.connect() as client:  # refusals name the same
            ask = ("/", "X-Forwarded-For: 10.0.0.1")
            answers = [client.get(*ask) for _ in range(5)]
        self.assertEqual(answers[-1].status, 429)
        self.assertIn(f"pk=:{ann}:", answers[-1].get("ratelimit"))

    def test_what_cannot_be_is_told_with_its_place(self):
        cases = {
            "[ietf-11, ietf-07]": "both write RateLimit",
            "{rename: {X-Other: X-Most}}": "no header that could be renamed",
            "{rename: {RateLimit: 'X Most'}}": "no name of a header",
            "{threshold_percent: 10}": "when",
            "{when: always, threshold_percent: 10}": "write when: below_threshold",
            "{partition_secret_file: nowhere}": "nowhere",
            "{familys: [ietf-03]}": "families",
        }
        for headers, said in cases.items():
            with self.subTest(headers=headers):
                text = self.configuration("a:1", more=f"gateway: {{ratelimit_headers: {headers}}}")
                done = sluice("check", self.file("a.yaml", text))
                self.assertNotEqual(done.code, 0)
                self.assertIn(said, done.out + done.err)
                self.assertIn("a.yaml:7", done.out + done.err)


class OwnAnswers(GatewayTest):
    """After a request was counted, also answers of the gateway itself say what is left. What a
    server in trouble answers, or the gateway in its place, invites nobody to ask again."""

    RULES = "[{name: api, per: ip, limit: 9/1h}]"

    def test_those_that_blame_the_client_tell_where_it_stands(self):
        text = self.configuration(
            self.upstream(), rules=self.RULES, more="gateway: {max_body_size: 1KiB}"
        )
        front = self.serve(text.replace("path: /**", "path: /app/**"))
        with front.connect() as client:
            for left, (status, request) in enumerate(
                ((404, get("/nowhere")), (405, get("/app/", method="TRACE")))
            ):
                answer = client.ask(request)
                self.assertProblem(answer, status)
                self.assertIn(f'"api";r={8 - left};', answer.get("ratelimit"))
        with front.connect() as client:
            answer = client.ask(get("/app/", "Content-Length: 2000", method="POST"))
        self.assertProblem(answer, 413)
        self.assertIn('"api";r=6', answer.get("ratelimit"))

    def test_those_of_trouble_do_not(self):
        nobody = "127.0.0.1:1"
        answer = self.gateway(nobody, rules=self.RULES).get()
        self.assertProblem(answer, 502)
        self.assertEqual(rates(answer), {})
        over = threading.Event()
        silent = self.upstream(lambda *_: over.wait(PATIENCE) and False)
        self.addCleanup(over.set)
        answer = self.gateway(silent, rules=self.RULES, of_upstream="response_timeout: 100ms").get()
        self.assertProblem(answer, 504)
        self.assertEqual(rates(answer), {})

    def test_the_same_holds_for_answers_of_servers(self):
        status = ["404 Not Found"]
        app = self.upstream(lambda _, wire: wire.send(reply(b"", status[0])) or True)
        front = self.gateway(app, rules=self.RULES)
        self.assertIn('"api";r=8', front.get().get("ratelimit"))
        for status[0] in ("500 Oh", "302 Found"):
            self.assertEqual(rates(front.get()), {})

    # A request that was no request was not counted either.
    def test_what_was_not_counted_is_not_told(self):
        front = self.gateway(self.upstream(), rules=self.RULES)
        with front.connect() as client:
            answer = client.ask(b"nonsense\r\n\r\n")
        self.assertProblem(answer, 400)
        self.assertEqual(rates(answer), {})


class Dates(GatewayTest):
    def assertRecent(self, answer):
        (date,) = answer.all("date")
        self.assertRegex(date, r"^\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$")
        age = time.time() - email.utils.parsedate_to_datetime(date).timestamp()
        self.assertTrue(-2 < age < 10, age)

    def test_answers_of_the_gateway_have_one(self):
        front = self.gateway(self.upstream(), rules="[{name: one, per: ip, limit: 1/1h}]")
        with front.connect() as client:
            statuses = []
            for request in (get(), get(), b"nonsense\r\n\r\n"):
                answer = client.ask(request)
                statuses.append(answer.status)
                self.assertRecent(answer)
        self.assertEqual(statuses, [200, 429, 400])

    def test_those_of_servers_keep_theirs_or_get_one(self):
        theirs = "Sun, 06 Nov 1994 08:49:37 GMT"
        headers = [f"Date: {theirs}"]
        app = self.upstream(lambda _, wire: wire.send(reply(b"", "200 OK", *headers)) or True)
        front = self.gateway(app)
        self.assertEqual(front.get().all("date"), [theirs])
        headers.clear()
        self.assertRecent(front.get())

    def test_it_goes_on(self):
        front = self.gateway(self.upstream(), workers=1)
        with front.connect() as client:
            first = client.get().get("date")
            wait_until(lambda: client.get().get("date") != first, "a second has passed")


class Names(GatewayTest):
    def test_an_answer_has_one_request_id(self):
        app = self.upstream(
            lambda _, wire: wire.send(reply(b"", "200 OK", "X-Request-ID: theirs")) or True
        )
        with self.gateway(app).connect() as client:
            self.assertEqual(client.get().all("x-request-id"), app.requests[0].all("x-request-id"))

    def unused_port(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            return listener.getsockname()[1]

    # One request would become as many as there are connections.
    def test_a_request_that_comes_back_goes_no_further(self):
        own = f"127.0.0.1:{self.unused_port()}"
        front = self.gateway(own, listen=own, more="access_log: {file: access.log}")
        for request in (get(), get("/", "Via: 1.1 somebody")):
            with front.connect() as client:
                self.assertProblem(client.ask(request), 508)
        wait_until(lambda: self.log().count(" 508 ") == 4, "each came back once")
        self.assertEqual(self.log().count("\n"), 4)

    # Another Sluice on the way is no circle.
    def test_one_gateway_may_stand_behind_another(self):
        app = self.upstream()
        inner = Gateway(self.file("inner.yaml", self.configuration(app) + "\n"))
        self.addCleanup(self.ended_well, inner)
        with self.gateway(f"127.0.0.1:{inner.port}").connect() as client:
            answer = client.ask(post(b"a"))
        self.assertEqual(answer.status, 200)
        for names in (answer.get("via"), app.requests[0].get("via")):
            self.assertRegex(names, r"^1\.1 sluice-[0-9a-f]{8}, 1\.1 sluice-[0-9a-f]{8}$")
            self.assertEqual(len(set(names.split(", "))), 2)


if __name__ == "__main__":
    unittest.main()
