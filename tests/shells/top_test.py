"""`kubectl device-health top` on a terminal of its own: the other screen with the bad device, what changes, q, and the screen that was there before.

usage: top_test.py PROGRAM
"""
import codecs
import http.server
import json
import os
import pathlib
import pty
import select
import sys
import tempfile
import threading
import time
import urllib.parse

PATIENCE = 60  # seconds; other steps keep the same cores busy
READ_AT_ONCE = 64  # bytes: a screen comes in pieces always, not only on a busy machine
SHOWS_OTHER, HIDES_CURSOR = "\x1b[?1049h", "\x1b[?25l"
LEAVES_OTHER, SHOWS_CURSOR = "\x1b[?1049l", "\x1b[?25h"
NAMESPACE, MAP, LEASE = "device-health-system", "device-health-status", "device-health-controller"


def status(device: str, version: str) -> dict:
    """The status ConfigMap with one bad device. tests/core and tests/cluster hold what the controller writes."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    text = {"format": 1, "version": "0", "mode": "enforce", "pause": None, "pauses": [], "policies": [], "verdicts": [],
            "counts": {"devicesUnhealthy": 1, "devicesUnknown": 0, "incidentsOpen": 1, "quarantined": 0},
            "devices": [{"device": f"gpu.example.com/node-a/{device}", "node": "node-a", "health": "Unhealthy", "since": now, "said": "Xid 79", "holders": ["ml/train-0"]}]}
    annotations = {"device-health.io/written-by": "controller-a", "device-health.io/written-at": now}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": MAP, "namespace": NAMESPACE, "uid": "1", "resourceVersion": version, "annotations": annotations},
            "data": {"status.json": json.dumps(text)}}


def lease() -> dict:
    renewed = time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime())
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": LEASE, "namespace": NAMESPACE, "uid": "2", "resourceVersion": "1"},
            "spec": {"holderIdentity": "controller-a_1", "leaseDurationSeconds": 15, "renewTime": renewed}}


class Server(http.server.BaseHTTPRequestHandler):
    """An API server as far as a reader of the status needs one."""

    protocol_version = "HTTP/1.1"
    changed = threading.Event()

    def answer(self, code: int, body: dict) -> None:
        text = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def do_GET(self) -> None:  # pylint: disable=invalid-name
        path, _, query = self.path.partition("?")
        asked = urllib.parse.parse_qs(query)
        if path.endswith(f"/leases/{LEASE}"):
            self.answer(200, lease())
        elif path.endswith(f"/configmaps/{MAP}"):
            self.answer(200, status("gpu-3", "1"))
        elif not path.endswith("/configmaps"):
            self.answer(404, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404})
        elif "watch" not in asked:
            self.answer(200, {"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": [status("gpu-3", "1")]})
        elif "sendInitialEvents" in asked:  # as a server without the gate WatchList
            self.answer(422, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Invalid", "code": 422,
                              "message": 'ListOptions.meta.k8s.io "" is invalid: sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled'})
        else:
            self.watch()

    def watch(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.changed.wait(PATIENCE)
        line = json.dumps({"type": "MODIFIED", "object": status("gpu-5", "2")}).encode() + b"\n"
        self.wfile.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")
        self.wfile.flush()
        time.sleep(PATIENCE)  # an open watch; the thread ends with the test

    def log_message(self, *_: object) -> None:
        pass


class Top:
    """The program with its keyboard and screen."""

    def __init__(self, command: list[str]) -> None:
        self.written = ""
        self.decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")  # a piece may end within a character
        self.pid, self.keyboard = pty.fork()
        if self.pid == 0:
            os.execve(command[0], command, {"PATH": "/usr/bin:/bin", "TERM": "xterm"})

    def read(self, end: float) -> bool:
        """Whether more has come; not once it has ended."""
        if not select.select([self.keyboard], [], [], max(0.0, end - time.monotonic()))[0]:
            return False
        try:
            more = os.read(self.keyboard, READ_AT_ONCE)
        except OSError:  # the terminal has nobody on it any more
            return False
        self.written += self.decoder.decode(more)
        return bool(more)

    def await_(self, wanted: str) -> bool:
        end = time.monotonic() + PATIENCE
        while wanted not in self.written:
            if not self.read(end):
                return False
        return True

    def ended(self) -> int | None:
        """Its exit code; None if it goes on."""
        end = time.monotonic() + PATIENCE
        while self.read(end):
            pass
        while time.monotonic() < end:
            pid, state = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(state)
            time.sleep(0.02)
        return None


def faults_of(program: pathlib.Path, kubeconfig: pathlib.Path) -> list[str]:
    top = Top([str(program), "top", "--kubeconfig", str(kubeconfig)])
    if not top.await_("gpu-3"):
        return [f"it does not show the bad device: {top.written[-600:]!r}"]
    if not top.written.startswith(SHOWS_OTHER + HIDES_CURSOR):
        return [f"it does not begin on the other screen: {top.written[:60]!r}"]
    faults = [f"it does not show {words!r}: {top.written[-600:]!r}" for words in ("Unhealthy", "ml/train-0", "leader controller-a_1", "q quit") if not top.await_(words)]
    Server.changed.set()
    if not top.await_("gpu-5"):
        faults.append(f"it does not show what has changed: {top.written[-600:]!r}")
    os.write(top.keyboard, b"q")
    code = top.ended()
    if code != 0:
        faults.append(f"after q it {'goes on' if code is None else f'ends with {code}'}")
    if not top.written.endswith(SHOWS_CURSOR + LEAVES_OTHER):
        faults.append(f"it does not leave the other screen: {top.written[-60:]!r}")
    if top.written.count(SHOWS_OTHER) != 1 or top.written.count(LEAVES_OTHER) != 1:
        faults.append("it goes to the other screen or leaves it more than once")
    return faults


def main() -> int:
    program = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder, http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
        server.daemon_threads = True
        server.block_on_close = False
        threading.Thread(target=server.serve_forever, daemon=True).start()
        kubeconfig = pathlib.Path(folder) / "kubeconfig"
        kubeconfig.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}], "users": [{"name": "test", "user": {}}]}))
        faults = faults_of(program, kubeconfig)
        server.shutdown()
    print("\n".join(faults) or "top opens, follows and leaves a terminal")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
