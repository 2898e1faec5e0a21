"""sluice status, against the real gateway and against those who are none."""

import json
import socket
import unittest

from admin_support import AdminTest, Watcher
from gateway_support import reply, wait_until
from support import sluice


class Status(AdminTest):
    def test_status_is_readable(self):
        app = self.upstream()
        front = self.admin(app, rules="[{name: one, per: ip, limit: 1/1h}]")
        self.assertEqual([front.get().status for _ in range(2)], [200, 429])
        done = sluice("status", "--server", self.url(front))
        self.assertEqual((done.code, done.err), (0, ""))
        self.assertRegex(done.out, r"^serving  sluice \d+\.\d+\.\d+, up \d+\w+ since 20")
        self.assertRegex(done.out, r", 2 workers\n")
        self.assertRegex(done.out, r"\nconfiguration +\S+, 1 rule, read ")
        self.assertRegex(done.out, r"\nrequests +2xx 1, 4xx 1\n")
        self.assertRegex(done.out, r"\nrejections +limited 1\n")
        self.assertRegex(done.out, rf"\napp +{app.address} +healthy +0 +1 +0\n")
        self.assertNotIn("\x1b", done.out)
        answer = self.ok("status", "--server", self.url(front), "--json")
        self.assertEqual(json.loads(answer.out)["rejections"], {"limited": 1})

    def test_it_says_what_to_do_when_nobody_answers(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            nobody = "http://127.0.0.1:%d" % taken.getsockname()[1]
        self.refuses(3, rf"{nobody}: .*refused; does it run", "status", "--server", nobody)
        self.refuses(2, "not reached by http", "status", "--server", "https://a.example")
        self.refuses(2, "--watch 1s", "status", "--watch", "often")
        self.refuses(3, "none.token", "status", "--token-file", "none.token")
        app = self.upstream()
        self.refuses(3, "not a status of Sluice", "status", "--server", f"http://{app.address}")
        front = self.gateway(app, rules="[{name: once, per: ip, limit: 1/1h}]")
        front.get()
        url = f"http://127.0.0.1:{front.port}"
        self.refuses(3, "answers with 429", "status", "--server", url)

    # What a server calls things must not steer the terminal of whoever looks at them.
    def test_no_server_writes_escapes_to_the_terminal(self):
        escape = "\x1b[2J"
        status = {"state": "serving" + escape, "version": escape, "requests": {escape: 1}}
        answer = reply(json.dumps(status).encode(), "200 OK", "Content-Type: application/json")
        app = self.upstream(lambda _, wire: wire.send(answer) or True)
        done = sluice("status", "--server", f"http://{app.address}")
        self.assertIn("?[2J 1", done.out)
        self.assertNotIn("\x1b", done.out)

    def test_a_full_table_is_a_warning(self):
        keys = {"used": 9, "capacity": 9, "full": True, "approximated": 3, "rejected": 2}
        keys |= {"blocks_dropped": 4, "block_rejections_lost": 6, "refund_units_lost": 5}
        for full, lines in ((True, 1), (False, 0)):
            status = {"state": "serving", "keys": keys | {"full": full}}
            answer = reply(json.dumps(status).encode(), "200 OK", "Content-Type: application/json")
            app = self.upstream(lambda _, wire, answer=answer: wire.send(answer) or True)
            done = sluice("status", "--server", f"http://{app.address}")
            self.assertEqual(done.out.count("\nwarning"), lines, done.out)
            if full:
                self.assertRegex(done.out, r"full; .* 3 approximated, 0 allowed .*, 2 rejected;")
                self.assertIn("; 4 blocks dropped, 6 rejections towards blocks lost, ", done.out)
                self.assertIn(", 5 units of refunds lost;", done.out)

    def test_watch_goes_on(self):
        front = self.admin(self.upstream())
        watcher = Watcher(self.url(front))
        self.addCleanup(watcher.stop)
        wait_until(lambda: watcher.lines >= 3, "it was shown three times")
        self.assertEqual(self.status(front)["state"], "serving")


if __name__ == "__main__":
    unittest.main()
