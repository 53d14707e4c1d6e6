#!/usr/bin/env python3
"""Fails when a room includes a room that cmake/rooms.cmake does not allow, a paper room includes torch, or code
calls what crashes beside some libtorch.

    tools/check_rooms.py [ROOT]
"""
import pathlib
import re
import sys

TORCH = re.compile(r"<(ATen|c10|torch|caffe2)/")
BACKEND = re.compile(r"<(torch/csrc/distributed|gloo)/|<mpi\.h>|<nccl\.h>")


def read_plan(path):
    text = path.read_text()
    lists = {name: words.replace('"', "").split() for name, words in re.findall(r"^set\((\w+)\s+([^)]*)\)", text, re.M)}
    rooms = {name[len("ROOM_"):]: set(words) for name, words in lists.items() if name.startswith("ROOM_")}
    return rooms, set(lists["SYNCOPATE_PAPER_ROOMS"])


def faults_in(root):
    rooms, paper = read_plan(root / "cmake" / "rooms.cmake")
    for path in sorted((root / "syncopate").rglob("*")):
        if path.suffix not in (".h", ".cpp", ".cu", ".cuh", ".inc"):
            continue
        parts = path.relative_to(root / "syncopate").parts
        room = parts[0] if len(parts) > 1 else "library"  # syncopate.h is its face
        where = path.relative_to(root)
        if room not in rooms:
            yield f"{where}: the room {room} is not in cmake/rooms.cmake"
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if re.search(r"\b(fs|filesystem)::remove_all\(", line):
                yield f"{where}:{number}: std::filesystem::remove_all crashes beside some libtorch; use remove_tree (base/file.h)"
            if not re.match(r"\s*#\s*include", line):
                continue
            other = re.match(r'\s*#\s*include\s*["<]syncopate/(\w+)/(\w+)', line)
            if other and other[1] != room and other[1] not in rooms[room]:
                yield f"{where}:{number}: {room} may not include {other[1]}"
            if other and room == "parallel" and other[1] == "nn" and other[2] != "model":
                yield f"{where}:{number}: parallel sees of nn only model.h"
            if room in paper and TORCH.search(line):
                yield f"{where}:{number}: {room} is a paper room and may not see torch"
            if BACKEND.search(line) and not (room == "comm" and path.suffix == ".cpp"):
                yield f"{where}:{number}: communication libraries are included in comm/*.cpp alone"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    faults = list(faults_in(root))
    print("\n".join(faults) if faults else "rooms: every include is on the plan")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
