#!/usr/bin/env python3
"""A loop of steps that saves a checkpoint when its pod is told of an eviction (docs/jobs.md). Standard library only: copy `notice` and `run`."""
import json
import os
import sys
import time

NOTICE = os.environ.get("DEVICE_HEALTH_NOTICE", "/etc/device-health/notice")


def notice(*actions):
    """The notice of such an action; None if there is none, or one of a version that we do not know."""
    try:
        with open(NOTICE, encoding="utf-8") as file:
            told = json.load(file)
    except (OSError, ValueError):
        return None
    return told if isinstance(told, dict) and told.get("v") == 1 and told.get("action") in actions else None


def run(step, save, first, last, every, any_rank=bool):
    """Steps `first` to `last`, a checkpoint after each `every`. With several ranks, `any_rank` tells all of them what one has been told, such as an
    all_reduce with MAX: they save together, whichever of them is to go."""
    heard = None
    for number in range(first, last):
        step(number)
        told = notice("evict", "peer") or {"at": heard}
        if any_rank(told["at"] != heard) or (number + 1) % every == 0:
            save(number + 1)
        heard = told["at"]
        # Saved: wait for the end, or for word that there is none. One that has come since is saved for after the next step.
        while any_rank((notice("evict") or {"at": None})["at"] == heard is not None):
            if (notice("evict") or {}).get("exit") == "safe":
                sys.exit(143)
            time.sleep(float(os.environ.get("POLL", "1")))


def main():
    path = os.environ.get("CHECKPOINT", "/checkpoints/step")
    first = int(open(path, encoding="utf-8").read()) if os.path.exists(path) else 0

    def save(number):
        with open(path + ".new", "w", encoding="utf-8") as file:
            file.write(str(number))
        os.replace(path + ".new", path)  # whole or not at all

    run(lambda number: time.sleep(float(os.environ.get("STEP", "0.2"))), save, first, int(os.environ.get("STEPS", "100000")), 3000)


if __name__ == "__main__":
    main()
