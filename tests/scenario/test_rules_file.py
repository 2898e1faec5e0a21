"""Rules in a file of their own: watched, kept for the next start, never replaced by bad ones."""

import os
import signal
import unittest

from admin_support import AdminTest
from gateway_support import wait_until
from support import sluice

TWO = "rules: [{name: two, per: ip, limit: 2/1h}]\n"
FIVE = "rules: [{name: two, per: ip, limit: 5/1h}]\n"
BAD = "rules: [{name: two, per: ip, limt: 2/1h}]\n"


class RulesFile(AdminTest):
    def setUp(self):
        super().setUp()
        self.app = self.upstream()

    def rules(self, text):
        """As editors do: a new file under the old name."""
        os.replace(self.file("new.yaml", text), os.path.join(self.folder, "rules.yaml"))

    def text(self, of_rules="file: rules.yaml", state=True, **options):
        text = self.configuration(
            self.app,
            state=f"state: {{memory: 4MiB{', file: state' if state else ''}}}",
            **options,
        )
        text = text.replace(f"rules: {self.NO_RULES}", f"rules_from: {{{of_rules}}}")
        return text.replace("listen: {", "listen: {admin: '127.0.0.1:0', ")

    def start(self, **options):
        front = self.serve(self.text(**options))
        front.says("admin on")
        front.admin_port = int(front.said.split("admin on 127.0.0.1:")[1].split()[0])
        wait_until(lambda: self.ask(front, "/readyz").status == 200, "it is ready")
        return front

    def of_status(self, front):
        return self.status(front)["configuration"]["rules_from"]

    def fails(self, pattern, **options):
        done = sluice("serve", "-c", self.file("sluice.yaml", self.text(**options) + "\n"))
        self.assertEqual(done.code, 3, done.err)
        self.assertRegex(done.err, pattern)

    def statuses(self, front, count):
        return [front.get().status for _ in range(count)]

    def test_a_change_comes_into_force_and_counts_stay(self):
        self.rules(TWO)
        front = self.start()
        self.assertIn("2 workers, 1 rule\n", front.said)
        self.assertEqual(self.statuses(front, 3), [200, 200, 429])
        self.assertTrue(self.of_status(front)["in_sync"])
        self.rules(FIVE)
        front.says("rules reloaded from")
        wait_until(lambda: front.get().status == 200, "there is room for more")
        self.assertEqual(self.statuses(front, 3), [200, 200, 429])

    def test_bad_rules_leave_the_good_ones_in_force_and_are_told_of(self):
        self.rules(TWO)
        front = self.start()
        self.rules(BAD)
        front.says("rules.yaml are not used")
        front.says("did you mean 'limit'")
        self.assertRegex(front.said, r"rules\.yaml:1:\d+")
        self.assertEqual(self.statuses(front, 3), [200, 200, 429])
        status = self.of_status(front)
        self.assertFalse(status["in_sync"])
        self.assertIn("limt", status["error"])
        page = self.page(front)
        self.assertEqual(page.sum("sluice_rules_fetches_total", result="rejected"), 1)
        self.assertEqual(page.sum("sluice_rules_in_sync"), 0)
        self.rules(TWO)
        front.says("those in force again")
        self.assertTrue(self.of_status(front)["in_sync"])
        self.assertEqual(self.page(front).sum("sluice_rules_in_sync"), 1)

    def test_a_file_that_vanishes_leaves_its_rules(self):
        self.rules(TWO)
        front = self.start()
        os.remove(os.path.join(self.folder, "rules.yaml"))
        front.says("cannot be read")
        self.assertEqual(self.statuses(front, 3), [200, 200, 429])

    def test_a_start_with_bad_or_missing_rules_goes_on_with_those_of_the_last_run(self):
        self.rules(TWO)
        self.assertEqual(self.start().stop(), 0)
        for damage in (lambda: self.rules(BAD), lambda: os.remove(f"{self.folder}/rules.yaml")):
            damage()
            front = self.start()
            front.says("went on with the rules of the last run")
            front.says("rules.yaml")
            status = self.of_status(front)
            self.assertTrue(status["of_last_run"])
            self.assertFalse(status["in_sync"])
            self.assertEqual(self.status(front)["configuration"]["rules"], 1)
            self.assertEqual(self.page(front).sum("sluice_rules_in_sync"), 0)
            self.assertEqual(front.stop(), 0)
        front = self.start()
        self.rules(FIVE)
        front.says("rules reloaded from")
        self.assertFalse(self.of_status(front)["of_last_run"])

    def test_without_rules_of_a_last_run_there_is_no_start(self):
        self.fails(r"rules\.yaml")
        self.rules(BAD)
        self.fails(r"(?s)rules\.yaml:1:\d+.*limt")
        # Nothing was kept: there was neither a state file nor a place for them.
        self.rules(TWO)
        self.assertEqual(self.start(state=False).stop(), 0)
        self.rules(BAD)
        self.fails("limt", state=False)

    def test_the_place_of_the_last_good_rules_can_be_chosen(self):
        self.rules(TWO)
        options = {"of_rules": "file: rules.yaml, last_good_file: kept/good", "state": False}
        self.assertEqual(self.start(**options).stop(), 0)
        self.assertTrue(os.path.exists(f"{self.folder}/kept/good"))
        self.rules(BAD)
        self.start(**options).says("kept/good")

    # As on a file system that tells of nothing: the time alone brings it.
    def test_a_hangup_reads_the_rules_at_once(self):
        self.rules(TWO)
        front = self.start()
        self.rules(BAD)
        front.says("are not used")
        before = front.said.count("are not used")
        front.signal(signal.SIGHUP)
        wait_until(lambda: front.said.count("are not used") > before, "it is tried again")

    # As Kubernetes does: the name stays, the folder behind it is another.
    def test_a_swap_of_links_is_noticed(self):
        for version, text in (("v1", TWO), ("v2", FIVE)):
            os.mkdir(f"{self.folder}/{version}")
            self.file(f"{version}/rules.yaml", text)
        os.symlink("v1", f"{self.folder}/..data")
        os.symlink("..data/rules.yaml", f"{self.folder}/rules.yaml")
        front = self.start()
        os.symlink("v2", f"{self.folder}/..new")
        os.replace(f"{self.folder}/..new", f"{self.folder}/..data")
        front.says("rules reloaded from")

    def test_where_the_rules_are_changes_with_a_restart_only(self):
        self.rules(TWO)
        front = self.start()
        self.file("sluice.yaml", self.text(of_rules="file: others.yaml") + "\n")
        front.says("rules_from has changed, which needs a restart")
        self.assertEqual(self.statuses(front, 3), [200, 200, 429])

    # The copy of the last good rules is beside it, and moves when it does.
    def test_another_state_file_does_not_hold_up_the_rest(self):
        self.rules(TWO)
        front = self.start()
        changed = self.text(more="drain: {timeout: 3s}").replace("file: state", "file: moved")
        self.assertIn("moved", changed)
        self.file("sluice.yaml", changed + "\n")
        front.says("configuration reloaded")
        front.says("needs a restart, and is as before until then: state.file")

    # As at a start: what is allowed and unwise.
    def test_warnings_are_told_at_a_reload(self):
        self.rules(TWO)
        front = self.start()
        queue = "algorithm: leaky_bucket, action: {queue: {max_delay: 2s, max_queued: 5}}"
        self.rules(f"rules: [{{name: two, per: ip, limit: 10/1s, {queue}}}]\n")
        front.says("warning: one client can take all 5 places")
        told = front.said.count("can take all 5")
        self.file("sluice.yaml", self.text(more="drain: {timeout: 3s}") + "\n")
        front.says("configuration reloaded")
        wait_until(lambda: front.said.count("can take all 5") == told + 1, "it is told again")

    def test_the_rest_of_the_file_changes_as_ever(self):
        self.rules(TWO)
        front = self.start()
        self.file("sluice.yaml", self.text(more="drain: {timeout: 3s}") + "\n")
        front.says("configuration reloaded: 1 rule\n")
        self.assertEqual(self.statuses(front, 3), [200, 200, 429])

    def test_other_commands_read_it_too(self):
        self.rules(TWO)
        path = self.file("sluice.yaml", self.text() + "\n")
        checked = sluice("check", path)
        self.assertEqual(checked.code, 0, checked.err)
        self.assertIn("two", checked.out)
        explained = sluice("explain", "GET /", "-c", path)
        self.assertIn("two", explained.out)
        self.rules(BAD)
        checked = sluice("check", path)
        self.assertEqual(checked.code, 1, checked.err)
        self.assertRegex(checked.out + checked.err, r"rules\.yaml:1:\d+")
        self.assertEqual(sluice("check", "--offline", path).code, 0)

    def test_rules_are_in_one_place(self):
        self.rules(TWO)
        text = self.text(more="unmatched: reject")
        done = sluice("check", self.file("sluice.yaml", text + "\n"))
        self.assertRegex(done.out + done.err, r"'unmatched' is here, but the rules are elsewhere")

    def test_many_changes_while_requests_come(self):
        self.rules(FIVE.replace("5/1h", "999/1h"))
        front = self.start()
        for i in range(20):
            self.rules(FIVE.replace("5/1h", f"{1000 + i}/1h"))
            self.assertEqual(front.get().status, 200)
        wait_until(lambda: self.of_status(front)["in_sync"], "the last one is in force")
        self.assertNotIn("not used", front.said)


if __name__ == "__main__":
    unittest.main()
