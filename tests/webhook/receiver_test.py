#!/usr/bin/env python3
"""Runs the receiver's lines of docs/webhook.md on a request that tests/loopback/app/webhook_test.cc holds the program to."""
import pathlib
import re
import time
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
KEY = b"a key of sixteen or more bytes"
BODY = b'{"a":1}'
AT = "1764105000"


def lines_of_the_page():
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs/webhook.md").read_text(encoding="utf-8"), re.DOTALL)
    names = {}
    exec(code, names)  # pylint: disable=exec-used
    return names["is_ours"]


def signature_of_the_program():
    text = (ROOT / "tests/loopback/app/webhook_test.cc").read_text(encoding="utf-8")
    assert f'"{AT}"' in text and KEY.decode() in text and BODY.decode() in text
    return re.search(r'"(sha256=[0-9a-f]{64})"', text)[1]


class Receiver(unittest.TestCase):
    def takes(self, key=KEY, body=BODY, at=AT, later=0, signature=None):
        headers = {"X-Device-Health-Timestamp": at, "X-Device-Health-Signature": signature or signature_of_the_program()}
        with mock.patch.object(time, "time", return_value=int(AT) + later):
            return lines_of_the_page()(key, headers, body)

    def test_takes_what_the_program_signs(self):
        self.assertTrue(self.takes())
        self.assertTrue(self.takes(later=299))

    def test_refuses_what_it_does_not(self):
        self.assertFalse(self.takes(key=b"another"))
        self.assertFalse(self.takes(body=b'{"a":2}'))
        self.assertFalse(self.takes(at=str(int(AT) + 1)))
        self.assertFalse(self.takes(signature="sha256=" + "0" * 64))

    def test_refuses_what_was_signed_long_ago(self):
        self.assertFalse(self.takes(later=301))


if __name__ == "__main__":
    unittest.main()
