"""Runs `sluice load URL` and holds its numbers against one another."""

from gateway_support import GatewayTest
from support import sluice


class LoadTest(GatewayTest):
    def url(self, server, path="/", scheme="http"):
        address = getattr(server, "address", None) or f"127.0.0.1:{server.port}"
        return f"{scheme}://{address}{path}"

    def load(self, url, *options, code=0):
        """One run, as JSON, whose parts add up."""
        if "--timeout" not in options:
            # A machine that stands still for seconds is late, and nothing is lost.
            options = (*options, "--timeout", "50s")
        done = sluice("load", url, "--json", *options)
        self.assertEqual(done.code, code, done.err or done.out)
        (result,) = done.json_lines()
        self.assertAddsUp(result)
        result["said"] = done.err
        return result

    def assertAddsUp(self, result):
        answers = sum(result["statuses"].values())
        errors = sum(result["errors"].values())
        ended = answers + errors + result["not_sent"]
        self.assertEqual(result["offered"], ended + result["unfinished"], result)
        self.assertEqual(result["latency_ns"]["all"]["count"], result["offered"])
        points = result["series"]["points"]
        self.assertEqual(sum(point["offered"] for point in points), result["offered"])
        self.assertEqual(sum(point["admitted"] for point in points), result["admitted"])
