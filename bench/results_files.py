#!/usr/bin/env python3
"""Checks that other programs read the files of a comparison as they are.

    bench/results_files.py FOLDER [--program build/syncopate]

Writes the report of FOLDER, reads results.csv with pandas (from PyPI, in a temporary environment, unless it is installed)
and converts results.xlsx with LibreOffice (`soffice`; said and left out where it is not installed). Every number of the
runs must be that of results.json.
"""
import argparse
import csv
import json
import math
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

FIGURES = {"quality": "quality", "speedup": "speedup", "ms": "ms", "examples_per_s": "examples_per_s",
           "train_seconds": "train_seconds", "train_loss": "loss", "bytes_per_step": "bytes_per_step", "updates": "steps"}


def with_pandas():
    """Goes on with a Python that has pandas."""
    try:
        import pandas  # noqa: F401
        return
    except ImportError:
        if os.environ.get("RESULTS_FILES_VENV"):
            raise
    folder = tempfile.mkdtemp(prefix="results-files-")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    subprocess.run([f"{folder}/bin/pip", "install", "--quiet", "pandas"], check=True)
    status = subprocess.run([f"{folder}/bin/python", *sys.argv], env={**os.environ, "RESULTS_FILES_VENV": "1"}).returncode
    shutil.rmtree(folder)
    sys.exit(status)


def close(value, expected):
    if expected is None:
        return value in ("", None) or (isinstance(value, float) and math.isnan(value))
    return math.isclose(float(value), expected, rel_tol=1e-9, abs_tol=1e-12)


def check_csv(folder, runs):
    import pandas
    frame = pandas.read_csv(folder / "results.csv")
    assert len(frame) == len(runs), (len(frame), len(runs))
    for (_, row), run in zip(frame.iterrows(), runs):
        for column, field in FIGURES.items():
            if run["state"] == "done":
                assert close(row[column], run[field]), (run["id"], column, row[column], run[field])
    numbers = [column for column in FIGURES if frame[column].dtype.kind not in "fi"]
    assert not numbers, f"not read as numbers: {numbers}"
    assert frame["excluded"].dropna().map(type).eq(bool).all(), "truths are read as truths"
    print(f"pandas {pandas.__version__} reads results.csv: {len(frame)} rows, {len(frame.columns)} columns")


def check_workbook(folder, runs):
    office = shutil.which("soffice") or shutil.which("libreoffice")
    if not office:
        print("LibreOffice is not installed: results.xlsx is not checked (apt-get install libreoffice-calc-nogui)")
        return
    with tempfile.TemporaryDirectory() as out:
        # The third filter option but the last is the sheet: -1 writes each into a file of its own.
        subprocess.run([office, f"-env:UserInstallation=file://{out}/profile", "--headless", "--convert-to",
                        "csv:Text - txt - csv (StarCalc):44,34,76,1,,0,false,false,false,false,false,-1", "--outdir", out,
                        str(folder / "results.xlsx")], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with open(f"{out}/results-runs.csv", newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        sheets = sorted(path.stem for path in pathlib.Path(out).glob("*.csv"))
    assert len(rows) == len(runs), (len(rows), len(runs))
    for row, run in zip(rows, runs):
        for column, field in FIGURES.items():
            if run["state"] == "done":
                assert close(row[column], run[field]), (run["id"], column, row[column], run[field])
    print(f"LibreOffice reads results.xlsx: {sheets}, {len(rows)} rows of runs")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--program", default="build/syncopate")
    options = parser.parse_args()
    with_pandas()
    subprocess.run([options.program, "report", str(options.folder)], check=True, stdout=subprocess.DEVNULL)
    runs = json.loads((options.folder / "results.json").read_text())["runs"]
    check_csv(options.folder, runs)
    check_workbook(options.folder, runs)


if __name__ == "__main__":
    main()
