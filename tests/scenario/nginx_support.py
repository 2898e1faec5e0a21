"""A real nginx, that ends with its test."""

import os
import pathlib
import shutil
import signal
import subprocess

from gateway_support import PATIENCE, GatewayTest, wait_until

NGINX = shutil.which("nginx", path="/usr/sbin:/usr/bin") or "nginx"  # what is missing says so


class NginxTest(GatewayTest):
    def nginx(self, text, is_listening):
        """Runs the text as the `http` block of one process until the end of the test."""
        root = pathlib.Path(self.folder) / "nginx"
        os.makedirs(root, exist_ok=True)
        temporary = "".join(
            f"{kind}_temp_path {root}/{kind};"
            for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        file = self.file(
            "nginx.conf",
            f"daemon off; master_process off; pid {root}/pid; error_log stderr crit;\n"
            f"events {{}}\nhttp {{ access_log off; {temporary}\n{text}\n}}\n",
        )
        process = subprocess.Popen(
            [NGINX, "-p", str(root), "-e", "stderr", "-c", file], stderr=subprocess.PIPE
        )
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait, PATIENCE)
        self.addCleanup(process.send_signal, signal.SIGTERM)
        wait_until(lambda: is_listening() or process.poll() is not None, "nginx listens")
        if process.poll() is not None:
            self.fail(process.stderr.read().decode() + text)
