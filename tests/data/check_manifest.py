#!/usr/bin/env python3
"""Checks that data/ is exactly what data/MANIFEST.json says: files, sizes, SHA-256, licences and the total size."""
import hashlib
import json
import math
import pathlib
import sys

MOST_BYTES = 12_000_000
LICENCES = {"Apache-2.0", "BSD-3-Clause", "MIT"}
ITEM_BYTES = {"f32": 4, "f64": 8}


def problems_of(folder, entry):
    path = folder / entry["file"]
    if not path.is_file():
        yield "is missing"
        return
    content = path.read_bytes()
    dims = "x".join(map(str, entry["dims"]))
    if entry["file"] != f"{entry['name']}_{dims}.{entry['dtype']}":
        yield f"name does not say {entry['name']}, {dims}, {entry['dtype']}"
    if entry["bytes"] != math.prod(entry["dims"]) * ITEM_BYTES[entry["dtype"]]:
        yield f"bytes {entry['bytes']} are not dims {dims} of {entry['dtype']}"
    if len(content) != entry["bytes"]:
        yield f"has {len(content)} bytes, the manifest says {entry['bytes']}"
    if hashlib.sha256(content).hexdigest() != entry["sha256"]:
        yield "SHA-256 differs from the manifest's"
    if entry["licence"] not in LICENCES:
        yield f"licence '{entry['licence']}' is none of {sorted(LICENCES)}"
    if not entry["source"].startswith("https://"):
        yield "has no source"


def main(folder):
    manifest = json.loads((folder / "MANIFEST.json").read_text())
    found = [f"{e['file']} {p}" for e in manifest["files"] for p in problems_of(folder, e)]
    listed = {e["file"] for e in manifest["files"]}
    for path in folder.iterdir():
        if path.suffix in (".f32", ".f64") and path.name not in listed:
            found.append(f"{path.name} is not in the manifest")
    total = sum(e["bytes"] for e in manifest["files"])
    if total != manifest["total_bytes"]:
        found.append(f"total_bytes is {manifest['total_bytes']}, the files sum to {total}")
    if total > MOST_BYTES:
        found.append(f"{total} bytes in all are more than {MOST_BYTES}")
    if not listed:
        found.append("no files")
    print("\n".join(found) or f"{len(listed)} files, {total} bytes: as the manifest says")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
