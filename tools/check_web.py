#!/usr/bin/env python3
"""Fails when web/dist/page.html, which the program carries, is older than its sources, or is not one file of its own.

    tools/check_web.py [ROOT]
"""
import hashlib
import os
import pathlib
import re
import sys

PLACE = '<script type="application/json" id="results">null</script>'
LARGEST = 500_000


def sources_hash(web):
    """The same as web/sources.mjs computes while it builds."""
    paths = []
    for folder, names, files in os.walk(web):
        here = pathlib.Path(folder).relative_to(web)
        skipped = {"dist", "node_modules"} if here == pathlib.Path() else set()
        names[:] = [name for name in names if not name.startswith(".") and name not in skipped]
        paths += [(here / name).as_posix() for name in files if not name.startswith(".")]
    lines = (f"{hashlib.sha256((web / path).read_bytes()).hexdigest()}  {path}\n" for path in sorted(paths))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def faults_in(root):
    web = root / "web"
    page = web / "dist" / "page.html"
    if not page.exists():
        yield f"{page} is not there: run make web"
        return
    text = page.read_text()
    stamp = re.search(r'<meta name="syncopate-sources" content="(\w+)">', text)
    if not stamp or stamp[1] != sources_hash(web):
        yield "web/dist/page.html is older than its sources: run make web and commit both"
    if text.count(PLACE) != 1:
        yield "web/dist/page.html must have exactly one place for the results"
    if len(text.encode()) > LARGEST:
        yield f"web/dist/page.html has {len(text.encode())} bytes, more than {LARGEST}"
    for outside in re.findall(r'(?:src|href)="?(?:https?:)?//[^"\s>]*|@import|url\((?!data:|#)', text):
        yield f"web/dist/page.html asks for something outside itself: {outside}"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    faults = list(faults_in(root))
    print("\n".join(faults) if faults else "web: the page is made from these sources")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
