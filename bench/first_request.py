#!/usr/bin/env python3
"""How long a start of the program takes until its first list or watch reaches a server: TLS on loopback, from before fork to the decrypted request.

usage: first_request.py PROGRAM [STARTS]     on a busy machine: chrt --fifo 50 bench/first_request.py ... (root)
"""
import base64
import pathlib
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import threading
import time

KUBECONFIG = """apiVersion: v1
kind: Config
clusters: [{{name: bench, cluster: {{server: "https://127.0.0.1:{port}", certificate-authority-data: {authority}}}}}]
users: [{{name: bench, user: {{token: none}}}}]
contexts: [{{name: bench, context: {{cluster: bench, user: bench}}}}]
current-context: bench
"""


def certificate(folder: pathlib.Path) -> None:
    subprocess.run(("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", folder / "key.pem", "-out", folder / "cert.pem",
                    "-days", "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"), check=True, stderr=subprocess.DEVNULL)


def seconds_of_one_start(program: str, folder: pathlib.Path) -> float:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    arrivals: list[float] = []
    arrived = threading.Event()

    def read(line: socket.socket) -> None:
        try:
            request = tls.wrap_socket(line, server_side=True).recv(4096)
        except OSError:
            return
        if request.startswith(b"GET "):  # others ask for rights
            arrivals.append(time.monotonic())
            arrived.set()

    def accept(listener: socket.socket) -> None:
        while True:
            try:
                line, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=read, args=(line,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        authority = base64.b64encode((folder / "cert.pem").read_bytes()).decode()
        (folder / "kubeconfig").write_text(KUBECONFIG.format(port=listener.getsockname()[1], authority=authority))
        threading.Thread(target=accept, args=(listener,), daemon=True).start()
        began = time.monotonic()
        process = subprocess.Popen((program, "run", "--kubeconfig", folder / "kubeconfig", "--metrics-bind-address", "127.0.0.1:0", "--health-probe-bind-address", "127.0.0.1:0", "--detail-bind-address", "0"),
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        there = arrived.wait(30)
        process.kill()
        process.wait()
    if not there:
        raise SystemExit("first_request.py: no list or watch arrived within 30 s")
    return min(arrivals) - began


def main(program: str, starts: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        certificate(folder)
        times = sorted(seconds_of_one_start(program, folder) * 1000 for _ in range(starts))
    print(f"start to first list or watch, {starts} starts: {times[0]:.1f} ms at best, {statistics.median(times):.1f} ms median, {times[-1]:.1f} ms at worst")


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        raise SystemExit(__doc__)
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) == 3 else 20)
