#!/usr/bin/env python3
"""Fails unless the suites of a test program are those that tests/CMakeLists.txt registers, so that none is left out.

    tools/check_suites.py PROGRAM SUITE...
"""
import re
import subprocess
import sys


def suites_of(program):
    listed = subprocess.run([program, "--gtest_list_tests"], check=True, capture_output=True, text=True).stdout
    suites = {}
    for line in listed.splitlines():
        if match := re.match(r"(?:\w+/)?(\w+)\.(\s|$)", line):
            cases = suites.setdefault(match[1], [])
        elif match := re.match(r"  (\w\S*)", line):
            cases.append(match[1])
    # What only another case starts, as a process of its own, is disabled.
    return {name for name, cases in suites.items() if not all(case.startswith("DISABLED_") for case in cases)}


def main():
    program, *registered = sys.argv[1:]
    there = suites_of(program)
    for name in sorted(there - set(registered)):
        print(f"{program} has the suite {name}: add it to SUITES_ in tests/CMakeLists.txt, or it is never run")
    for name in sorted(set(registered) - there):
        print(f"tests/CMakeLists.txt names the suite {name}, which {program} does not have")
    return 0 if there == set(registered) else 1


if __name__ == "__main__":
    sys.exit(main())
