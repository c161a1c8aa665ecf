"""A simulated cluster and the real program on it, for the tests of the live page."""
from __future__ import annotations

import json
import os
import pathlib
import re
import select
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

from browser import Failed

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("DHC_BUILD", ROOT / "build" / "dev"))

# A first policy that evicts, and one whose pods wait, so that there is always somebody who is held.
POLICIES = """\
apiVersion: device-health.io/v1alpha1
kind: DeviceHealthPolicy
metadata: {name: inference}
spec: {mode: enforce, match: {resources: ["example.com/gpu"]}, after: 1s, evict: {after: 45s}, jobRetry: {}}
---
apiVersion: device-health.io/v1alpha1
kind: DeviceHealthPolicy
metadata: {name: render}
spec: {mode: enforce, match: {drivers: ["gpu.example.com"]}, after: 1s, taint: {device: NoSchedule}, evict: {after: 10m}}
"""


class Replica:
    """The program, told to lead if nobody does."""

    def __init__(self, folder: pathlib.Path, name: str) -> None:
        self._log = folder / f"{name}.log"
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [str(BUILD / "device-health-controller"), "run", "--kubeconfig", str(folder / "kubeconfig"), "--config", str(folder / "policies.yaml"), "--mode", "enforce",
                 "--metrics-bind-address", "0", "--health-probe-bind-address", "0", "--detail-bind-address", "127.0.0.1:0"],
                stdout=log, stderr=log, stdin=subprocess.DEVNULL, env={"PATH": os.environ["PATH"], "POD_NAMESPACE": "dhc"})
        self.url = f"http://{self._address()}/"

    def _address(self) -> str:
        end = time.monotonic() + 20
        while time.monotonic() < end:
            if found := re.search(r"what=detail address=(127\.0\.0\.1:\d+)", self._log.read_text()):
                return found[1]
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        raise Failed("the program does not serve: " + self._log.read_text()[-600:])

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


class Stage:
    """`with Stage() as stage`: the address of the page is `stage.url`."""

    def __init__(self, policies: str = POLICIES) -> None:
        self._temporary = tempfile.TemporaryDirectory(prefix="page-stage-")
        self._folder = pathlib.Path(self._temporary.name)
        (self._folder / "policies.yaml").write_text(policies)
        kubeconfig = str(self._folder / "kubeconfig")
        self._replicas: list[Replica] = []
        self.cluster = subprocess.Popen([str(BUILD / "page_cluster"), kubeconfig], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        try:
            if line_of(self.cluster, 20) != kubeconfig:
                raise Failed("the simulated cluster does not begin")
            self.leader = self.replica()
        except BaseException:
            self.__exit__()
            raise
        self.url = self.leader.url

    def replica(self) -> Replica:
        self._replicas.append(Replica(self._folder, f"replica-{len(self._replicas)}"))
        return self._replicas[-1]

    def __enter__(self) -> Stage:
        return self

    def __exit__(self, *_: object) -> None:
        for replica in self._replicas:
            replica.kill()
        self.cluster.kill()
        self.cluster.wait()
        self._temporary.cleanup()

    def configure(self, text: str) -> None:
        """Another configuration, as a file that takes the old one's place; the program reads it within a second."""
        fresh = self._folder / "policies.new"
        fresh.write_text(text)
        fresh.replace(self._folder / "policies.yaml")

    def tell(self, command: str) -> None:
        assert self.cluster.stdin
        self.cluster.stdin.write(command + "\n")
        self.cluster.stdin.flush()

    def held(self) -> list[tuple[str, str, list[str]]]:
        """Plugin and DRA devices with the pods that hold them."""
        found = []
        for node in range(1, 13):
            for device in [f"GPU-{i}" for i in range(4)] + [f"gpu-{i}" for i in range(8)]:
                self.tell(f"held gpu-node-{node:02} {device}")
                if pods := line_of(self.cluster, 10).split():
                    found.append((f"gpu-node-{node:02}", device, pods))
        return found

    def json(self) -> dict:
        """What the leader answers on /verdicts; 503 is an answer, too."""
        try:
            with urllib.request.urlopen(self.leader.url + "verdicts", timeout=10) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            return json.load(error)

    def verdicts(self) -> list[dict]:
        return self.json()["verdicts"] or []


class Demo:
    """The demo, which prints where its page is."""

    def __init__(self, act: str = "dra") -> None:
        self.process = subprocess.Popen([str(BUILD / "device-health-controller"), "demo", "--act", act, "--speed", "2"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert self.process.stdout
        for _ in range(6):
            if found := re.search(r"http://127\.0\.0\.1:\d+/", self.process.stdout.readline()):
                self.url = found[0]
                return
        self.__exit__()
        raise Failed("the demo does not say where its page is")

    def __enter__(self) -> Demo:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()


class Synthetic:
    """The page over made-up nodes, for measuring."""

    def __init__(self, nodes: int) -> None:
        self.process = subprocess.Popen([str(BUILD / "page_cluster"), "--synthetic", str(nodes)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        self.url = f"http://{line_of(self.process, 20)}/"

    def __enter__(self) -> Synthetic:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()

    def flip(self, count: int) -> None:
        assert self.process.stdin
        self.process.stdin.write(f"{count}\n")
        self.process.stdin.flush()


def line_of(process: subprocess.Popen, within: float) -> str:
    """The next line that it prints. Of a process that prints one line at a time, when it is asked."""
    assert process.stdout
    if not select.select([process.stdout], [], [], within)[0]:
        raise Failed("no answer from " + str(process.args))
    return process.stdout.readline().strip()
