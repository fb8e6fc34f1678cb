"""Files of other programs: what they are, and how to turn them into a table."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from typing import Any

from ..problem.errors import DataError
from .files import open_bytes, reading

_PANDAS = "python -c \"import pandas; pandas.{read}.to_csv('{stem}.csv', index=False)\""
_EXCEL = ("a spreadsheet", "read_excel('{name}')")
_JSON = ("JSON", "read_json('{name}')")
_LINES = ("JSON, one document a line", "read_json('{name}', lines=True)")
#: What pandas can read, by the ending of the name.
_TABLES = {
    **dict.fromkeys((".xlsx", ".xls", ".xlsm", ".xlsb", ".ods"), _EXCEL),
    ".json": _JSON,
    **dict.fromkeys((".jsonl", ".ndjson"), _LINES),
    ".orc": ("an ORC file", "read_orc('{name}')"),
    ".dta": ("a Stata file", "read_stata('{name}')"),
    ".sav": ("an SPSS file", "read_spss('{name}')"),
    ".sas7bdat": ("a SAS file", "read_sas('{name}')"),
    ".xml": ("XML", "read_xml('{name}')"),
    **dict.fromkeys((".html", ".htm"), ("a web page", "read_html('{name}')[0]")),
}
_PICKLE = (
    "a Python pickle, which is never opened here because opening one can run any program",
    "in the program that wrote it, save frame.to_csv('{stem}.csv', index=False) or numpy.savez('{stem}.npz', X=X, y=y)",
)
_ARCHIVE = ("a packed file", "unpack it first and name the table in it (gzip alone is read as it is)")
_PICTURE = ("a picture", "a table or IDX images are needed, one row or image a sample")
_ARRAYS = "save its arrays with numpy.savez('{stem}.npz', X=X, y=y)"
#: What else there is: what it is and what to do.
_OTHERS = {
    **dict.fromkeys((".pkl", ".pickle", ".joblib"), _PICKLE),
    ".mat": ("a MATLAB file", f"read it with scipy.io.loadmat('{{name}}') and {_ARRAYS}"),
    **dict.fromkeys((".h5", ".hdf5", ".hdf"), ("an HDF5 file", f"read it with h5py or pandas.read_hdf, and {_ARRAYS}")),
    ".arff": (
        "an ARFF file of Weka",
        "pandas.DataFrame(scipy.io.arff.loadarff('{name}')[0]).to_csv('{stem}.csv', index=False) makes a CSV file",
    ),
    **dict.fromkeys((".rds", ".rda", ".rdata"), (
        "a file of R", "in R: write.csv(table, '{stem}.csv', row.names=FALSE)"
    )),
    **dict.fromkeys((".svm", ".libsvm", ".svmlight"), (
        "a file in the format of LIBSVM", f"read it with sklearn.datasets.load_svmlight_file, and {_ARRAYS}"
    )),
    **dict.fromkeys((".pt", ".pth", ".safetensors", ".onnx"), (
        "a file of weights", f"data are needed here; if it holds tensors X and y, {_ARRAYS}"
    )),
    **dict.fromkeys((".db", ".sqlite", ".sqlite3"), (
        "a database", "pandas.read_sql gives a frame, which to_csv('{stem}.csv', index=False) writes"
    )),
    **dict.fromkeys((".zip", ".tar", ".tgz", ".bz2", ".xz", ".zst", ".7z", ".rar"), _ARCHIVE),
    **dict.fromkeys((".png", ".jpg", ".jpeg", ".gif", ".bmp", ".tif", ".tiff", ".webp"), _PICTURE),
    ".pdf": ("a PDF document", "a table is needed, such as a CSV file"),
}  # fmt: skip
#: First bytes, for files whose names say nothing or the wrong thing.
_BYTES = {
    b"\xd0\xcf\x11\xe0": _EXCEL,
    b"\x80\x02": _PICKLE,
    b"\x80\x03": _PICKLE,
    b"\x80\x04": _PICKLE,
    b"\x80\x05": _PICKLE,
    b"MATLAB 5.0": _OTHERS[".mat"],
    b"\x89HDF": _OTHERS[".h5"],
    b"SQLite format": _OTHERS[".db"],
    b"\x89PNG": _PICTURE,
    b"\xff\xd8\xff": _PICTURE,
    b"%PDF": _OTHERS[".pdf"],
    b"BZh": _ARCHIVE,
    b"\xfd7zXZ": _ARCHIVE,
    b"\x28\xb5\x2f\xfd": _ARCHIVE,
}


#: Tables that pandas reads for us, by the ending of the name and by the first bytes.
_READ = {
    **dict.fromkeys((".parquet", ".pq", b"PAR1"), "read_parquet"),
    **dict.fromkeys((".feather", ".arrow", b"ARROW1"), "read_feather"),
}


def frame_reader(file: Path) -> str | None:
    """Return the name of the function of pandas that reads this file, if it is a Parquet or Feather file."""
    by_name = _READ.get(file.suffix.lower())
    if by_name is not None or file.suffix.lower() in (*_TABLES, *_OTHERS):
        return by_name
    with reading(file), open_bytes(file) as stream:
        start = stream.read(6)
    return next((how for magic, how in _READ.items() if isinstance(magic, bytes) and start.startswith(magic)), None)


def read_frame(file: Path) -> Any:
    """Read a Parquet or Feather file, as far as pandas can."""
    how = frame_reader(file) or ""
    kind = "a Parquet file" if how == "read_parquet" else "a Feather file"
    try:
        import pandas as pd

        return getattr(pd, how)(file)
    except ImportError:
        raise DataError(
            f"{file} is {kind}, which pandas and pyarrow read, and they are not both installed; pip install "
            "'reluflow[tables]' brings them, or write it as CSV where they are."
        ) from None
    except Exception as exc:  # the readers of pyarrow have errors of many families, and all are about the file
        words = (str(exc).splitlines() or ["it is empty"])[0].rstrip(".")
        raise DataError(f"{file} is {kind} that cannot be read: {words}. Get it again, or write it as CSV.") from None


def check_kind(file: Path) -> None:
    """Refuse files that other programs read, with the way from there to here."""
    ending = file.suffix.lower()
    found = _TABLES.get(ending) or _OTHERS.get(ending) or _by_content(file)
    if found is None:
        return
    what, how = found
    names = {"name": str(file), "stem": str(file.with_suffix(""))}
    if found in _TABLES.values():
        remedy = f"{_PANDAS.format(read=how.format(**names), stem=names['stem'])} makes a CSV file of it"
    else:
        remedy = how.format(**names)
    raise DataError(f"{file} is {what}; CSV, TSV, NPZ, NPY, IDX, Parquet or Feather is needed. Do this: {remedy}.")


def _by_content(file: Path) -> tuple[str, str] | None:
    with reading(file), open_bytes(file) as stream:
        start = stream.read(16)
    if start.startswith(b"PK") and zipfile.is_zipfile(file):
        try:
            with zipfile.ZipFile(file) as archive:
                office = "[Content_Types].xml" in archive.namelist()
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
            return None
        return _EXCEL if office else None
    if re.match(rb'\s*(\{\s*"|\[\s*[\[{])', start):
        return _JSON
    return next((found for magic, found in _BYTES.items() if start.startswith(magic)), None)
