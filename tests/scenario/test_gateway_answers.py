"""What answers carry: where clients stand, dates, ids, and who passed them on."""

import email.utils
import re
import socket
import time
import unittest

from gateway_support import Gateway, GatewayTest, get, post, reply, wait_until


def rates(answer):
    """The headers that tell where a client stands."""
    return {
        name.lower(): answer.get(name.lower())
        for name, _ in answer.headers
        if re.match(r"(x-)?rate-?limit", name.lower())
    }


class OwnAnswers(GatewayTest):
    """After a request was counted, also answers of the gateway itself say what is left. What a
    server in trouble answers, or the gateway in its place, invites nobody to ask again."""

    RULES = "[{name: api, per: ip, limit: 9/1h}]"

    def test_those_that_blame_the_client_tell_where_it_stands(self):
        text = self.configuration(
            self.upstream(), rules=self.RULES, more="gateway: {body_max: 1KiB}"
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
        silent = self.upstream(lambda *_: time.sleep(0.5))
        answer = self.gateway(silent, rules=self.RULES, of_upstream="answer: 100ms").get()
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
