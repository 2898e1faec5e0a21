"""What answers carry: dates, ids, and who passed them on."""

import email.utils
import socket
import time
import unittest

from gateway_support import Gateway, GatewayTest, get, post, reply, wait_until


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
