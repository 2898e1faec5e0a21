"""No spelling of a path, a method or a header goes around the gateway: with a real nginx behind."""

import os
import unittest

from gateway_support import post
from nginx_support import NginxTest

# What nginx takes for /v1/login.
PLAIN = [
    "/v1/login",
    "/v1//login",
    "/v1/./login",
    "/x/../v1/login",
    "/v1/%6cogin",
    "/v1/login?next=%2Fhome",
]
ESCAPED = [
    "/v1%2flogin",
    "/v1%2Flogin",
    "/%2fv1/login",
    "/v1/%2flogin",
    "/v1%2f/login",
    "/v1%2f%2F%2flogin",
    "/v1%2fx/../login",
    "/x/..%2fv1/login",
    "/x/%2e%2e%2fv1/login",
    "/x%2f../v1/login",
    "/v1/.%2flogin",
    "/v1/%2e%2flogin",
    "/x/%2e%2e/v1%2flogin",
    "/v1/x/../%2flogin",
    "http://a.example/v1%2flogin",
]
# A slash more at the end, or a backslash: the same to servers behind, or to other servers.
OTHER_SERVERS = [
    "/v1/login%2f",
    "/v1/login/%2F",
    "/v1%5clogin",
    "/v1/%5Clogin",
    "/v1/x%5c..%5Clogin",
    "/v1%5c%2flogin",
    "/v1/login/",
]


class EscapedSlashes(NginxTest):
    def login_server(self):
        """Says whether it is asked for /v1/login."""
        path = os.path.join(self.folder, "login.sock")
        self.nginx(
            f"server {{ listen unix:{path};\n"
            'location = /v1/login { return 200 "login"; }\n'
            'location / { return 200 "other"; } }',
            lambda: os.path.exists(path),
        )
        return path

    def before(self, server, more="", routes="{path: /**, upstream: app}"):
        return self.serve(
            f"""
rules: [{{name: login, match: {{path: /v1/login}}, limit: 1/1h}}]
listen: {{gateway: 127.0.0.1:0}}
upstreams: {{app: {{servers: ['unix:{server}']}}, other: {{servers: ['unix:{server}']}}}}
routes: [{routes}]
workers: 1
{more}
{self.STATE}
"""
        )

    def test_count_towards_the_limit_or_are_rejected(self):
        server = self.login_server()
        gateway = self.before(server)
        self.assertEqual(gateway.get("/v1/login").body, b"login")
        targets = PLAIN + ESCAPED + OTHER_SERVERS
        statuses = {target: gateway.get(target).status for target in targets}
        self.assertEqual({t: s for t, s in statuses.items() if s not in (400, 429)}, {})
        for target in ("/v1%2flogin", "/v1/%2flogin", "/v1/login%2f", "/v1%5clogin"):
            self.assertEqual(statuses[target], 429)
        for target in ("/x/..%2fv1/login", "/v1/.%2flogin", "/v1%5c%2flogin"):
            self.assertEqual(statuses[target], 400)
        self.assertEqual(gateway.get("/v1%252flogin").status, 200, "it is decoded once only")

    # The spellings are those of nginx: what passes where escaped slashes are kept is /v1/login.
    def test_are_kept_on_request(self):
        gateway = self.before(self.login_server(), "escaped_slashes: keep")
        self.assertEqual(gateway.get("/v1/login").status, 200)
        for target in ESCAPED:
            with self.subTest(target):
                answer = gateway.get(target)
                self.assertEqual((answer.status, answer.body), (200, b"login"))

    def test_are_rejected_on_request_and_where_their_readings_part(self):
        server = self.login_server()
        gateway = self.before(server, "escaped_slashes: {hosts: {a.example: reject}}")
        self.assertEqual(gateway.get("/a%2fb").status, 400)
        self.assertEqual(gateway.get("/a?b=%2f").status, 200)
        routes = "{path: /v1/**, upstream: app}, {path: /**, upstream: other}"
        gateway = self.before(server, routes=routes)
        self.assertEqual(gateway.get("/v1%2fx").status, 400)
        self.assertIn(b"different routes", gateway.get("/v1%2fx").body)
        self.assertEqual(gateway.get("/v1/a%2fb").body, b"other")


class Imitations(NginxTest):
    def gateway(self, app, client_ip_header="CF-Connecting-IP"):
        return self.serve(
            f"""
rules: [{{name: posts, match: {{method: POST}}, limit: 2/1h}}]
clients: {{trusted_proxies: 127.0.0.0/8, client_ip_header: {client_ip_header}}}
listen: {{gateway: 127.0.0.1:0}}
upstreams: {{app: {{servers: ['{app.address}']}}}}
routes: [{{path: /**, upstream: app}}]
{self.STATE}
"""
        )

    def test_of_headers_do_not_reach_the_server(self):
        app = self.upstream()
        gateway = self.gateway(app)
        for name in ("Transfer_Encoding", "Content_Length", "Keep_Alive"):
            self.assertEqual(gateway.get("/", f"{name}: 1").status, 400)
        imitations = ("X_Forwarded_For: 1", "CF_Connecting_IP: 2", "Cf-Connecting_Ip: 3")
        imitations += ("X_Forwarded_Proto: 5", "X_Real_IP: 6")
        others = ("CF-Connecting-IP: 192.0.2.1", "X_Mine: 4")
        self.assertEqual(gateway.get("/", *imitations, *others).status, 200)
        names = [name.lower() for name, _ in app.requests[-1].headers]
        self.assertIn("x_mine", names)
        self.assertIn("cf-connecting-ip", names)
        self.assertEqual([name for name in names if "_" in name], ["x_mine"])

    def test_of_a_header_that_has_an_underscore_itself(self):
        app = self.upstream()
        gateway = self.gateway(app, client_ip_header="CF_Connecting_IP")
        imitations = ("CF-Connecting-IP: 192.0.2.2", "CF-Connecting_IP: 192.0.2.3")
        real = "CF_Connecting_IP: 192.0.2.1"
        self.assertEqual(gateway.get("/", *imitations, real).status, 200)
        seen = [(name.lower(), value) for name, value in app.requests[-1].headers]
        seen = [(name, value) for name, value in seen if name.startswith("cf")]
        self.assertEqual(seen, [("cf_connecting_ip", "192.0.2.1")])

    def test_of_methods_are_counted(self):
        app = self.upstream()
        gateway = self.gateway(app)
        with gateway.connect() as client:
            self.assertEqual(client.ask(post(b"x")).status, 200)
            self.assertEqual(client.ask(post(b"x").replace(b"POST", b"post")).status, 200)
            self.assertEqual(client.ask(post(b"x").replace(b"POST", b"Post")).status, 429)
        self.assertEqual(app.requests[-1].method, "post", "passed on as it came")
        with gateway.connect() as client:
            answer = client.ask(b"M" * 9000 + b" / HTTP/1.1\r\nHost: a\r\n\r\n")
            self.assertEqual(answer.status, 501)
            self.assertIn(b"the method is too long", answer.body)


if __name__ == "__main__":
    unittest.main()
