#!/usr/bin/env python3
"""Prints the slowest test cases of the last `make test`.

    tools/slowest_tests.py FOLDER [COUNT]     FOLDER holds GTest's XML reports
"""
import pathlib
import sys
import xml.etree.ElementTree as tree


def cases_in(folder):
    for path in sorted(pathlib.Path(folder).glob("*.xml")):
        try:
            root = tree.parse(path).getroot()
        except tree.ParseError:
            print(f"{path} is not whole: its program crashed")
            continue
        for case in root.iter("testcase"):
            if case.get("result") == "completed":
                yield float(case.get("time")), path.stem, f"{case.get('classname')}.{case.get('name')}"


def main():
    folder, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 10
    cases = sorted(cases_in(folder), reverse=True)
    print(f"{len(cases)} cases took {sum(case[0] for case in cases):.0f} s in all; the slowest:")
    for seconds, test, name in cases[:count]:
        print(f"{seconds:7.1f} s  {test.split('.')[0]}: {name}")


if __name__ == "__main__":
    main()
